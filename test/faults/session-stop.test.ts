import { expect, test } from 'vitest';
import type { LeftReport } from '../../src/app/left-cells.ts';
import { parseJson } from '../../src/lib/parse-json.ts';
import { waitFor } from '../support/leftovers.ts';
import { makeMarker } from '../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import { hotcell } from '../support/session-command.ts';
import { ServedSessions } from '../support/session-site.ts';
import { countMarked } from '../support/session-work.ts';

/** Nobody comes back for this long; the end is due much sooner. */
const PATIENCE_MS = 90_000;
/** The clocks of cell and server are not one. */
const CLOCKS_MS = 500;

interface LogLine {
  readonly msg: string;
  readonly sessions: number;
  readonly until?: string;
  readonly hint?: string;
}

/** What the server said last; its last line of all may come after its end. */
async function lastWords({ server }: ServedSessions): Promise<LogLine[]> {
  await waitFor('its last line', () => server.output.includes('"server stopped"'));
  const lines = server.output.split('\n').map((line) => parseJson(line) as LogLine | undefined);
  return lines.filter((line) => line?.msg?.includes('sessions') === true) as LogLine[];
}

/** Processes and containers of its cells. */
async function cellsOf(served: ServedSessions): Promise<string[]> {
  return (await served.remains()).filter((line) => /^(pid|container) /.test(line));
}

describeEach(FRESH_WAYS, (way) => {
  test('[RS-12, RS-22] with --on-stop end nothing is left of any session, whatever it did', async () => {
    await using served = await ServedSessions.open({ way, args: ['--on-stop', 'end'] });
    const door = served.door();
    const [, busy, paused] = [await door.create(), await door.create(), await door.create()];
    const marker = makeMarker();
    await busy.begin(`trap '' TERM; sleep ${marker}`);
    await paused.begin(`sleep ${marker}`);
    await waitFor('both run', () => countMarked(marker) === 2);
    await paused.get('POST', '/pause');
    expect(await served.kill('SIGTERM')).toBe(0);
    expect(countMarked(marker)).toBe(0);
    expect(await cellsOf(served)).toEqual([]);
    expect(await lastWords(served)).toMatchObject([{ msg: 'sessions ended', sessions: 3 }]);
    // Helpers of the server end with it, and not before it.
    await waitFor('nothing is left', async () => (await served.remains()).length === 0);
    const told = await hotcell(served, 'doctor', '--json');
    expect((JSON.parse(told.stdout) as LeftReport).left).toEqual([]);
    await served.start();
    const gone = await busy.ask('GET', '');
    expect([gone.status, gone.body.detail]).toEqual([410, expect.stringContaining('the server stopped')]);
  });

  test('[RS-18, RS-22] without it as many cells stay as it says, and end when it says, by themselves', async () => {
    const args = ['--set', 'sessions.ttlMs=10000', '--set', 'sessions.abandonedMs=1000'];
    await using served = await ServedSessions.open({ way, args });
    const door = served.door();
    // Both of one project, whose files are kept after any expiry, and go with the last session below.
    const project = { project_id: 'shared' };
    const [, busy] = [await door.create(project), await door.create(project)];
    const marker = makeMarker();
    await busy.begin(`sleep ${marker}`, { timeout_s: 3 });
    await waitFor('it runs', () => countMarked(marker) === 1);
    expect(await served.kill('SIGTERM')).toBe(0);
    expect(countMarked(marker)).toBe(1);
    const [kept, ...more] = await lastWords(served);
    expect([kept, more]).toMatchObject([{ msg: 'sessions kept', sessions: 2 }, []]);
    const until = Date.parse(kept?.until ?? '');
    const pids = async (): Promise<string[]> =>
      (await cellsOf(served)).filter((line) => line.startsWith('pid '));
    await waitFor('the cells have ended', async () => (await pids()).length === 0, PATIENCE_MS);
    expect(Date.now()).toBeGreaterThan(until - CLOCKS_MS);
    expect(countMarked(marker)).toBe(0);
    await served.start();
    const gone = await busy.ask('GET', '');
    expect([gone.status, gone.body.detail]).toEqual([410, expect.stringContaining('expired')]);
    await (await door.create(project)).remove();
  });

  test('[RS-18, WB-02] sessions that are paused are said to stay, and wait for down', async () => {
    const args = ['--set', 'sessions.abandonedMs=1000'];
    await using served = await ServedSessions.open({ way, args });
    const paused = await served.door().create({ ttl_s: 60 });
    const marker = makeMarker();
    await paused.begin(`sleep ${marker}`);
    await waitFor('it runs', () => countMarked(marker) === 1);
    await paused.get('POST', '/pause');
    expect(await served.kill('SIGTERM')).toBe(0);
    const [kept, ...more] = await lastWords(served);
    expect([kept, more]).toMatchObject([{ msg: 'paused sessions kept', sessions: 1 }, []]);
    expect(kept?.until).toBeUndefined();
    expect(kept?.hint).toContain('hotcell down');
    expect((await hotcell(served, 'doctor')).stdout).toMatch(/never: paused/);
    expect(countMarked(marker)).toBe(1);
    expect(await hotcell(served, 'down')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Ended 1 session,/) as unknown,
    });
    expect(countMarked(marker)).toBe(0);
    await waitFor('nothing is left', async () => (await served.remains()).length === 0);
  });
});
