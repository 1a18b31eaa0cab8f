import { expect, test } from 'vitest';
import { waitFor } from '../support/leftovers.ts';
import { makeMarker } from '../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import { ServedSessions } from '../support/session-site.ts';
import { countMarked } from '../support/session-work.ts';

const set = (settings: Record<string, number>): string[] =>
  Object.entries(settings).flatMap(([name, value]) => ['--set', `sessions.${name}=${value}`]);

/** Nobody comes back for this long; each of the ends below is due much sooner. */
const PATIENCE_MS = 90_000;

describeEach(FRESH_WAYS, (way) => {
  test('[RS-07, SC-02] a command ends at its deadline though no server is there, however stubborn it is', async () => {
    await using served = await ServedSessions.open({ way, args: set({ graceMs: 100 }) });
    const hand = await served.door().create();
    const marker = makeMarker();
    const stubborn = `trap '' TERM; echo up; sleep ${marker}`;
    const id = await hand.begin(stubborn, { timeout_s: 5 });
    await waitFor('it runs', () => countMarked(marker) === 1);
    await served.kill();
    expect(countMarked(marker)).toBe(1);
    await waitFor('the cell has ended it', () => countMarked(marker) === 0, PATIENCE_MS);
    await served.start();
    expect(await hand.result(id)).toMatchObject({ exit_code: 124, end: { reason: 'timeout' } });
    await hand.expectUsable();
  });

  test('[RS-18, SC-02] a cell ends after its session would have, though no server is there', async () => {
    const args = set({ graceMs: 600_000, ttlMs: 5000, abandonedMs: 1000 });
    await using served = await ServedSessions.open({ way, args });
    const hand = await served.door().create();
    const marker = makeMarker();
    await hand.begin(`sleep ${marker}`, { timeout_s: 3 });
    await waitFor('it runs', () => countMarked(marker) === 1);
    await served.kill();
    await waitFor('the cell has ended', () => countMarked(marker) === 0, PATIENCE_MS);
    await served.start();
    const gone = await hand.ask('GET', '');
    expect(gone).toMatchObject({ status: 410, body: { code: 'SESSION_ENDED' } });
    expect(gone.body.detail).toContain('expired');
    // Files stay for the next session of the project, as after any expiry.
    await (await served.door().create({ project_id: hand.made.project_id })).remove();
  });
});
