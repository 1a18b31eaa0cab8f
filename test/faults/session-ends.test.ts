import { expect, describe, test } from 'vitest';
import type { ExecReply } from '../../src/wire/session-exec.ts';
import { waitFor } from '../support/leftovers.ts';
import { makeMarker, runCode } from '../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import { ServedSessions } from '../support/session-site.ts';
import {
  count,
  countCells,
  countMarked,
  countMounts,
  endCell,
  expectWhole,
} from '../support/session-work.ts';

describeEach(FRESH_WAYS, (way) => {
  test('[RS-22] an orderly stop keeps sessions and their commands as well', async () => {
    await using served = await ServedSessions.open({ way });
    const hand = await served.door().create();
    await hand.print('mkdir there && cd there');
    const marker = makeMarker();
    const counter = await hand.begin(count(marker));
    const waiting = hand.ask('POST', '/exec', { command: 'sleep 2; echo slept' });
    await waitFor('both run', async () => {
      const { execs } = await hand.get<{ execs: ExecReply[] }>('GET', '/execs');
      const running = execs.filter(({ state }) => state === 'running').length;
      // The shell may not have come to the program yet.
      return running === 2 && countMarked(marker) === 1;
    });
    expect(await served.kill('SIGTERM')).toBe(0);
    // Whoever waited is told where to ask.
    expect(await waiting).toMatchObject({ status: 503, body: { code: 'SHUTTING_DOWN' } });
    expect(countMarked(marker)).toBe(1);
    await served.start();
    const { execs } = await hand.get<{ execs: ExecReply[] }>('GET', '/execs');
    const slept = execs.find(({ command }) => command.startsWith('sleep'));
    expect(await hand.result(slept?.exec_id ?? '')).toMatchObject({ ok: true });
    expect(await hand.output(slept?.exec_id ?? '')).toBe('slept\n');
    expect(await hand.print('pwd; touch stop')).toBe(`${hand.made.workspace_path}/there\n`);
    await hand.result(counter);
    expectWhole(await hand.output(counter));
  });

  describe('a cell that is ended from outside', () => {
    test('[RS-22, SC-02] its commands and its session say so, and nothing of it is left', async () => {
      await using served = await ServedSessions.open({ way });
      const door = served.door();
      const [hand, neighbour] = [await door.create(), await door.create()];
      const marker = makeMarker();
      const running = hand.ask<ExecReply['result'] & object>('POST', '/exec', { command: `sleep ${marker}` });
      await waitFor('it runs', () => countMarked(marker) === 1);
      await endCell(served, marker);
      const { status, body } = await running;
      expect([status, status === 200 ? body.end.reason : body.code]).toEqual([200, 'cell_lost']);
      await waitFor('its session has ended', async () => (await hand.ask('GET', '')).status === 410);
      const gone = await hand.ask('POST', '/exec', { command: 'true' });
      expect(gone).toMatchObject({ status: 410, body: { code: 'SESSION_ENDED' } });
      expect(gone.body.detail).toContain('cell_lost');
      await neighbour.expectUsable();
      await waitFor(
        'nothing of it is left',
        async () => countMounts(served) === 1 && (await countCells(served)) === 1,
      );
      // Whose work was lost by no fault of his finds it again.
      const next = await door.create({ project_id: hand.made.project_id });
      await next.expectUsable();
    });

    test('[RS-22, SC-02] while no server runs: told as gone, with the reason', async () => {
      await using served = await ServedSessions.open({ way });
      const hand = await served.door().create();
      await hand.get('POST', '/upload', { files: [{ path: 'work.txt', content: 'of days' }] });
      const marker = makeMarker();
      await hand.begin(`sleep ${marker}`);
      await waitFor('it runs', () => countMarked(marker) === 1);
      await served.kill();
      await endCell(served, marker);
      await served.start();
      const answer = await hand.ask('GET', '');
      expect(answer).toMatchObject({ status: 410, body: { code: 'SESSION_ENDED' } });
      expect(answer.body.detail).toMatch(/cell_lost/);
      expect(await countCells(served)).toBe(0);
      const next = await served.door().create({ project_id: hand.made.project_id });
      expect(await next.print('cat work.txt')).toBe('of days');
    });
  });

  test('[SC-02] a second server on the same folder has no sessions and touches nobody’s', async () => {
    await using served = await ServedSessions.open({ way });
    const hand = await served.door().create();
    const counter = await hand.begin(count(makeMarker()));
    const second = await served.startBeside();
    try {
      const answer = await fetch(`${second.url}/v1/sessions`);
      expect(answer.status).toBe(503);
      expect(await answer.json()).toMatchObject({ code: 'SESSIONS_UNAVAILABLE' });
      expect((await runCode(second, 'bash', 'echo served')).stdout).toBe('served\n');
    } finally {
      expect(await second.stop()).toBe(0);
    }
    await hand.expectUsable();
    await hand.print('touch stop');
    await hand.result(counter);
    expectWhole(await hand.output(counter));
    expect(countMounts(served)).toBe(1);
  });
});
