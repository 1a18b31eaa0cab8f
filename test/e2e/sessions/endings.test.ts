import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KillReply } from '../../../src/wire/session-exec.ts';
import { waitFor } from '../../support/leftovers.ts';
import { countMarked, makeMarker, waitUntilGone } from '../../support/live-server.ts';
import { OCI_FRESH, describeEach } from '../../support/served-by.ts';
import type { TestServer } from '../../support/server.ts';
import {
  openSession,
  startSessionServer,
  stopSessionServer,
  type TestSession,
} from '../../support/sessions.ts';

const GRACE_MS = 600;
const TIMEOUT_S = 1;

/** Commands that start `sleep <marker>` in ways that have fooled process killers, and then stay. */
const TREES: Readonly<Record<string, (marker: string) => string>> = {
  'a child': (marker) => `sleep ${marker} & echo started; wait`,
  'a grandchild': (marker) => `bash -c 'bash -c "sleep ${marker} & wait" & wait' & echo started; wait`,
  'a daemon in a session of its own': (marker) =>
    `(setsid bash -c 'sleep ${marker} </dev/null >/dev/null 2>&1 & disown' &); echo started; while :; do sleep 1; done`,
  'children that ignore every signal they can': (marker) =>
    `trap '' TERM HUP INT QUIT; bash -c 'trap "" TERM HUP INT; sleep ${marker}; :' & echo started; wait`,
  'a stopped child': (marker) =>
    `sleep ${marker} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; echo started; wait`,
};

/** Runs until something is done about it, after it was seen on the host: otherwise its absence would prove nothing. */
async function untilSeen(marker: string): Promise<void> {
  await waitFor('the tree runs', () => countMarked(marker) > 0);
}

describeEach([OCI_FRESH], (way) => {
  let server: TestServer;
  let session: TestSession;
  beforeAll(async () => {
    server = await startSessionServer(way, { args: ['--set', `sessions.graceMs=${GRACE_MS}`] });
    session = await openSession(server);
  });
  afterAll(() => stopSessionServer(server));

  describe('timeout', () => {
    test('[RS-07] SIGTERM comes first, to all of its processes', async () => {
      const trap = (name: string): string => `trap 'echo ${name} was asked; exit 7' TERM`;
      const inner = `${trap('child')}; echo child; while :; do sleep 0.02; done`;
      const command = `${trap('shell')}; bash -c ${JSON.stringify(inner)} & while :; do sleep 0.02; done`;
      const reply = await session.exec({ command, timeout_s: TIMEOUT_S });
      expect(reply).toMatchObject({
        ok: false,
        exit_code: 124,
        end: {
          reason: 'timeout',
          message: 'timed out after 1 second',
          signal: 'SIGTERM',
          killed_by: null,
        },
      });
      expect(reply.stdout.trimEnd().split('\n').toSorted()).toEqual([
        'child',
        'child was asked',
        'shell was asked',
      ]);
      expect(reply.duration_ms).toBeGreaterThanOrEqual(TIMEOUT_S * 1000 - 1);
    });

    test('[RS-07] SIGKILL comes after the grace, and what was printed meanwhile is kept', async () => {
      const command = `trap 'echo asked' TERM; echo started; while :; do sleep 0.02; done`;
      const reply = await session.exec({ command, timeout_s: TIMEOUT_S });
      expect(reply).toMatchObject({
        stdout: 'started\nasked\n',
        exit_code: 124,
        end: { reason: 'timeout', signal: 'SIGKILL' },
      });
      expect(reply.duration_ms).toBeGreaterThanOrEqual(TIMEOUT_S * 1000 + GRACE_MS - 1);
      expect(await session.print('echo usable')).toBe('usable\n');
    });

    // At once: each takes its time anyway.
    test.concurrent.each(Object.keys(TREES))('[RS-07] %s dies with the command', async (kind) => {
      await using own = await openSession(server);
      const marker = makeMarker();
      const pending = own.exec({ command: TREES[kind]?.(marker) ?? '', timeout_s: 3 });
      await untilSeen(marker);
      const { end, stdout } = await pending;
      expect([end.reason, stdout]).toEqual(['timeout', 'started\n']);
      await waitUntilGone(marker);
      expect(await own.print('echo usable')).toBe('usable\n');
    });

    test('[RS-07] one in the background has its time, too', async () => {
      const marker = makeMarker();
      const id = await session.begin({ command: `setsid sleep ${marker}`, timeout_s: TIMEOUT_S });
      await untilSeen(marker);
      expect((await session.find(id, 30)).result).toMatchObject({
        exit_code: 124,
        end: { reason: 'timeout' },
      });
      await waitUntilGone(marker);
    });

    test('[RS-07] waiting for a turn does not count', async () => {
      await using own = await openSession(server);
      const first = 'echo started; sleep 1.5';
      const running = own.exec(first);
      await own.untilRunning(first);
      expect(await own.exec({ command: 'echo late', timeout_s: TIMEOUT_S })).toMatchObject({
        stdout: 'late\n',
      });
      expect((await running).ok).toBe(true);
    });
  });

  describe('kill', () => {
    test.concurrent.each(Object.keys(TREES))('[RS-12] %s dies with the command', async (kind) => {
      await using own = await openSession(server);
      const marker = makeMarker();
      const command = TREES[kind]?.(marker) ?? '';
      const pending = own.exec(command);
      const id = await own.untilRunning(command);
      await untilSeen(marker);
      expect((await own.post('/kill')).as(KillReply)).toEqual({ killed: true, exec_ids: [id] });
      expect(await pending).toMatchObject({
        exec_id: id,
        ok: false,
        stdout: 'started\n',
        exit_code: 130,
        end: { reason: 'killed', message: 'killed on request', signal: 'SIGKILL', killed_by: 'request' },
      });
      await waitUntilGone(marker);
      expect(await own.print('echo usable')).toBe('usable\n');
    });

    test('[RS-12] where nothing runs, nothing is killed; commands in the background are left alone', async () => {
      await using own = await openSession(server);
      const id = await own.begin('sleep 1000');
      expect((await own.post('/kill')).as(KillReply)).toEqual({ killed: false, exec_ids: [] });
      expect((await own.find(id)).state).toBe('running');
    });

    test('[RS-12, RS-21] the one that waits has its turn when the one before is killed', async () => {
      await using own = await openSession(server);
      const first = 'echo started; sleep 1000';
      const running = own.exec(first);
      const id = await own.untilRunning(first);
      const waiting = own.exec('echo second');
      await waitFor('the second waits', async () =>
        (await own.execs()).some(({ state }) => state === 'waiting'),
      );
      await own.post(`/execs/${id}/kill`);
      expect((await running).end.reason).toBe('killed');
      expect((await waiting).stdout).toBe('second\n');
    });
  });

  describe('the reason of the end', () => {
    test.each([
      ['exit 0', { ok: true, exit_code: 0, end: { reason: 'exit', signal: null } }],
      ['exit 255', { ok: false, exit_code: 255, end: { reason: 'exit', signal: null } }],
      ['nosuchprogram', { exit_code: 127, end: { reason: 'exit' } }],
      ['/etc/passwd', { exit_code: 126, end: { reason: 'exit' } }],
      ['if', { exit_code: 2, end: { reason: 'exit' } }],
      ['kill -SEGV $$', { ok: false, exit_code: 139, end: { reason: 'signal', signal: 'SIGSEGV' } }],
      ['kill -KILL $$', { ok: false, exit_code: 137, end: { reason: 'signal', signal: 'SIGKILL' } }],
      ['bash -c "kill -TERM \\$\\$"; exit $?', { exit_code: 143, end: { reason: 'exit', signal: null } }],
      // Nobody set a time limit: a program that calls itself timed out is just that.
      ['exit 124', { exit_code: 124, end: { reason: 'exit' } }],
    ])('[RS-02] of %s', async (command, expected) => {
      expect(await session.exec(command)).toMatchObject({ ...expected, limits_reached: [] });
    });

    test('[RS-02] a command is over when its shell is, and takes what it left behind with it', async () => {
      const marker = makeMarker();
      const reply = await session.exec(`sleep ${marker} & echo "$!"`);
      expect(reply).toMatchObject({ ok: true, end: { reason: 'exit' } });
      await waitUntilGone(marker);
    });
  });
});
