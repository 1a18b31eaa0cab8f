import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { LeftReport } from '../../src/app/left-cells.ts';
import { engineApi } from '../support/docker-engine.ts';
import { waitFor } from '../support/leftovers.ts';
import { makeMarker } from '../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import { beginCommand, hotcell } from '../support/session-command.ts';
import type { Hand } from '../support/session-door.ts';
import { siteOf } from '../support/session-remains.ts';
import { ServedSessions } from '../support/session-site.ts';
import { countMarked } from '../support/session-work.ts';

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

/** Whoever looks from another folder is told of the cells, and that they are not of that folder. */
async function expectSeenFromElsewhere(served: ServedSessions, cells: number): Promise<void> {
  const { store, driver } = siteOf(served.stateDirectory, served.way.driver);
  const there = ['--set', `sessions.dir=${served.stateDirectory}-elsewhere`];
  const told = await hotcell(served, 'doctor', '--json', ...there);
  const { left, otherStores } = JSON.parse(told.stdout) as LeftReport;
  expect(left.filter(({ session }) => session !== null)).toEqual([]);
  expect(otherStores).toContainEqual(expect.objectContaining({ driver, store, cells }));
  const words = (await hotcell(served, 'doctor', ...there)).stdout;
  expect(words).toContain(store);
  expect(words).toContain('hotcell down --set sessions.dir=FOLDER');
}

/** Data of a later version are a finding, not an empty place. */
async function expectTooNew(served: ServedSessions): Promise<void> {
  const setVersion = (version: string): string => {
    using db = new DatabaseSync(join(served.dataDirectory, 'sessions.db'));
    const before = String(db.prepare("SELECT value FROM meta WHERE name = 'schema'").get()?.['value']);
    db.prepare("UPDATE meta SET value = ? WHERE name = 'schema'").run(version);
    return before;
  };
  const version = setVersion('99');
  const { stdout } = await hotcell(served, 'doctor');
  expect(stdout).toMatch(/was written by a later version.*\n +→ Start the version of Hotcell that wrote it/);
  expect(stdout).toContain('Cells of servers that are gone');
  expect(setVersion(version)).toBe('99');
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
    const { left } = JSON.parse(told.stdout) as LeftReport;
    const sessions = left.filter(({ session }) => session !== null);
    expect(sessions.map(({ driver }) => driver)).toEqual(hands.map(() => way.driver));
    // The one that is frozen does not end by itself.
    expect(sessions.filter(({ paused }) => paused).map(({ until }) => until)).toEqual([null]);
    for (const { paused, since, until } of sessions)
      expect(Date.parse(since ?? '')).toBeLessThan(paused ? Date.now() : Date.parse(until ?? ''));
    // An engine ends the containers of runs by itself.
    expect(left.length - sessions.length).toBeGreaterThanOrEqual(way.driver === 'oci' ? 1 : 0);
    const words = (await hotcell(served, 'doctor')).stdout;
    for (const { session } of sessions) expect(words).toContain(session);
    expect(words).toContain('→ To end them: hotcell down');

    await expectSeenFromElsewhere(served, hands.length);
    await expectTooNew(served);

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
      const child = beginCommand(served, ['down']);
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
