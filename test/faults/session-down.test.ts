import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { COMPILE_CACHE, MAIN } from '../support/command.ts';
import { engineApi } from '../support/docker-engine.ts';
import { waitFor } from '../support/leftovers.ts';
import { makeMarker } from '../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import { dataDirectoryOf } from '../support/server.ts';
import type { Hand } from '../support/session-door.ts';
import { ServedSessions } from '../support/session-site.ts';
import { countMarked } from '../support/session-work.ts';

interface LeftCell {
  readonly driver: string;
  readonly session: string | null;
  readonly since: string;
  readonly until: string | null;
}

/** The real command, on the folders of this server. */
function begin({ way, stateDirectory }: ServedSessions, words: readonly string[]): ChildProcess {
  return spawn(process.execPath, [MAIN, ...words, ...way.args], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOTCELL_STATE_DIR: stateDirectory,
      HOTCELL_SESSIONS_DIR: dataDirectoryOf(stateDirectory),
      ...COMPILE_CACHE,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

async function hotcell(served: ServedSessions, ...words: string[]) {
  const child = begin(served, words);
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.on('data', (chunk: Buffer) => (said[name] += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...said };
}

/** One that is idle, one with a program that carries the marker, and one that is frozen. */
async function createThree(served: ServedSessions, marker: string): Promise<Hand[]> {
  const door = served.door();
  const hands = [await door.create(), await door.create(), await door.create()];
  await hands[1]?.begin(`sleep ${marker}`, { timeout_s: 3600 });
  await hands[2]?.get('POST', '/pause');
  await waitFor('it runs', () => countMarked(marker) === 1);
  return hands;
}

async function expectDeleted(served: ServedSessions, hands: readonly Hand[]): Promise<void> {
  await served.start();
  for (const hand of hands) {
    const { status, body } = await hand.ask('GET', '');
    expect([status, body.detail]).toEqual([410, expect.stringContaining('hotcell down')]);
  }
}

/** A container that is not ours. */
async function makeStranger(): Promise<AsyncDisposable & { readonly isThere: () => Promise<boolean> }> {
  const name = `stranger-${makeMarker()}`;
  const body = { Image: 'hotcell-shell:latest', Cmd: ['sleep', '1000'] };
  await engineApi().call('POST', `/containers/create?name=${name}`, body);
  return {
    isThere: () =>
      engineApi()
        .call('GET', `/containers/${name}/json`)
        .then(
          () => true,
          () => false,
        ),
    [Symbol.asyncDispose]: async () => {
      await engineApi().call('DELETE', `/containers/${name}?force=1`);
    },
  };
}

describeEach(FRESH_WAYS, (way) => {
  test('[RS-12, SC-02, WB-02] doctor names the cells of a killed server; down ends them, and nobody else', async () => {
    await using served = await ServedSessions.open({ way });
    await using other = await ServedSessions.open({ way });
    await using stranger = way.driver === 'docker' ? await makeStranger() : undefined;
    const neighbour = await other.door().create();
    const marker = makeMarker();
    const hands = await createThree(served, marker);
    const stray = makeMarker();
    served.server.execute('bash', { code: `sleep ${stray}`, timeout_ms: 60_000 }).catch(() => {});
    await waitFor('a run is under way', () => countMarked(stray) === 1);
    expect((await hotcell(served, 'doctor')).stdout).not.toContain('servers that are gone');
    await served.kill();

    const told = await hotcell(served, 'doctor', '--json');
    const { left } = JSON.parse(told.stdout) as { left: LeftCell[] };
    const sessions = left.filter(({ session }) => session !== null);
    expect(sessions.map(({ driver }) => driver)).toEqual(hands.map(() => way.driver));
    // The one that is frozen does not end by itself.
    expect(sessions.filter(({ until }) => until === null)).toHaveLength(1);
    for (const { since, until } of sessions)
      expect(Date.parse(since)).toBeLessThan(until === null ? Date.now() : Date.parse(until));
    // An engine ends the containers of runs by itself.
    expect(left.length - sessions.length).toBeGreaterThanOrEqual(way.driver === 'oci' ? 1 : 0);
    const words = (await hotcell(served, 'doctor')).stdout;
    for (const { session } of sessions) expect(words).toContain(session);
    expect(words).toContain('→ To end them: hotcell down');

    const { code, stdout, stderr } = await hotcell(served, 'down');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^Ended 3 sessions, removed \d other cell/)]);
    for (const { session } of sessions) expect(stderr).toContain(`ended session ${session}`);
    await waitFor('their programs are gone', () => countMarked(marker) + countMarked(stray) === 0);
    await waitFor('nothing is left', async () => (await served.remains()).length === 0);
    expect(await hotcell(served, 'down')).toEqual({
      code: 0,
      stdout: 'Nothing to end: no server, no session and no cell is left.\n',
      stderr: '',
    });
    await neighbour.expectUsable();
    expect(await stranger?.isThere()).not.toBe(false);
    await expectDeleted(served, hands);
  });

  test('[RS-12] down beside a running server stops it, and then ends its sessions', async () => {
    await using served = await ServedSessions.open({ way });
    const marker = makeMarker();
    const hands = await createThree(served, marker);
    const ended = once(served.server.process, 'exit');
    const { code, stdout } = await hotcell(served, 'down', '--json');
    expect((await ended)[0]).toBe(0);
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      { server: served.server.process.pid, left: [], problems: [], sessions: hands.map(() => ({})) },
    ]);
    await waitFor('nothing is left', async () => (await served.remains()).length === 0);
    expect(countMarked(marker)).toBe(0);
    await expectDeleted(served, hands);
  });

  test('[SC-02] a down that is killed amid its work is finished by the next one', async () => {
    await using served = await ServedSessions.open({ way });
    const hands = await createThree(served, makeMarker());
    await served.kill();
    const killAfter = async (moment: (child: ChildProcess) => Promise<unknown>): Promise<unknown> => {
      const child = begin(served, ['down']);
      const ended = once(child, 'exit');
      await Promise.race([ended, moment(child)]);
      child.kill('SIGKILL');
      return (await ended)[1];
    };
    // The first word that it says is that one of them has ended.
    expect(await killAfter(({ stderr }) => once(stderr ?? process, 'data'))).toBe('SIGKILL');
    for (const ms of [400, 700, 1000]) await killAfter(() => sleep(ms));
    expect((await hotcell(served, 'down')).code).toBe(0);
    await waitFor('nothing is left', async () => (await served.remains()).length === 0);
    await expectDeleted(served, hands);
  });
});
