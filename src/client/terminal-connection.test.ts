import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BreakingProxy } from '../../test/support/breaking-proxy.ts';
import { ScriptedServer } from '../http/scripted-server.double.ts';
import { SESSION } from '../http/sessions/scripted-sessions.double.ts';
import { HttpRunnerClient } from './http-runner-client.ts';
import type { RunnerError } from './runner-error.ts';
import { howOften } from '../../test/support/endurance.ts';

/** Every third byte, and with ENDURANCE every one. */
const STEP = howOften(3, 1);

const QUICK = { firstDelayMs: 1, longestDelayMs: 4 };

let server: ScriptedServer;
let proxy: BreakingProxy;
beforeEach(async () => {
  server = await ScriptedServer.start();
  proxy = await BreakingProxy.start(server.port);
});
afterEach(async () => {
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const makeClient = (retries = {}) =>
  new HttpRunnerClient({ baseUrl: proxy.url, retries: { ...QUICK, ...retries } });

describe('a terminal', () => {
  const SIZE = { rows: 30, columns: 100 };

  async function show(terminal: AsyncIterable<Uint8Array>): Promise<string> {
    let shown = '';
    for await (const bytes of terminal) shown += Buffer.from(bytes).toString('latin1');
    return shown;
  }

  test(
    '[RS-20] a connection that breaks after any byte costs no byte and doubles none',
    { timeout: 120_000 },
    async () => {
      const { session } = server.sessions;
      const whole = { shown: 'prompt$ \xff\0\u0001', lostBytes: 7, ok: true };
      // A new terminal is not asked for twice.
      const unknown = { code: 'NETWORK' };
      const seen = new Set<string>();
      let lastCut = 0;
      for (let cut = 130, isDone = false; !isDone; cut += STEP) {
        // Another address each time: connections that are kept for later would not be the first ones.
        await using breaking = await BreakingProxy.start(server.port);
        breaking.cutAfter = (connection) => (connection === 1 ? cut : Infinity);
        const outcome = await new HttpRunnerClient({ baseUrl: breaking.url, retries: QUICK })
          .openTerminal(SESSION, SIZE)
          .then(
            async (terminal) => {
              const exec = session.findExec(terminal.execId);
              exec.print('stdout', 'prompt$ ');
              exec.cut(7);
              exec.print('stdout', Buffer.from([0xff, 0, 1]));
              exec.end();
              const shown = await show(terminal);
              return { shown, lostBytes: terminal.lostBytes, ok: (await terminal.exit)?.ok };
            },
            ({ code }: RunnerError) => ({ code }),
          );
        expect([
          [cut, whole],
          [cut, unknown],
        ]).toContainEqual([cut, outcome]);
        seen.add(JSON.stringify(outcome));
        isDone = 'shown' in outcome && breaking.connections === 1;
        lastCut = cut;
      }
      expect(seen.size).toBe(2);
      // The answer to the handshake, the terminal's id, output, what was cut, the end.
      expect(lastCut).toBeGreaterThan(600);
      await expect
        .poll(() => [...session.commands.values()].map(({ followers }) => followers))
        .not.toContain(1);
    },
  );

  test('[RS-20] keys, size and eof travel; what is typed without a connection comes later', async () => {
    const terminal = await makeClient({ reconnects: 500 }).openTerminal(SESSION, SIZE);
    const exec = server.sessions.session.findExec(terminal.execId);
    terminal.write('ls\r');
    terminal.resize({ rows: 5, columns: 6 });
    const typed = (): unknown[] => exec.calls.filter(([name]) => name !== 'follow');
    await expect.poll(typed).toEqual([
      ['write', 'ls\r'],
      ['resize', { rows: 5, columns: 6 }],
    ]);
    const target = proxy.target;
    proxy.target = 1;
    proxy.breakAll();
    await expect.poll(() => exec.followers).toBe(0);
    terminal.write('later');
    proxy.target = target;
    // The size is told again with the new connection.
    await expect
      .poll(() => typed().slice(2))
      .toEqual([
        ['resize', { rows: 5, columns: 6 }],
        ['write', 'later'],
      ]);
    terminal.close();
    expect(await terminal.exit).toBeUndefined();
    await expect.poll(() => [exec.followers, proxy.open]).toEqual([0, 0]);
  });

  test('[RS-20] a reader that is slow keeps the output at the server, and gets all of it', async () => {
    const terminal = await makeClient().openTerminal(SESSION, SIZE);
    const exec = server.sessions.session.findExec(terminal.execId);
    for (let part = 0; part < 2000; part += 1) exec.print('stdout', `${part}\n`);
    await expect.poll(() => exec.followers).toBe(0);
    exec.end();
    expect(await show(terminal)).toBe(Array.from({ length: 2000 }, (_, part) => `${part}\n`).join(''));
  });

  test('[RS-20] why it was refused is said, though a WebSocket does not say it', async () => {
    const client = makeClient();
    await expect(client.openTerminal('session_old', SIZE)).rejects.toMatchObject({
      code: 'SESSION_ENDED',
      status: 410,
    });
    await expect(client.openTerminal('other', SIZE)).rejects.toMatchObject({ code: 'SESSION_UNKNOWN' });
    await expect(client.openTerminal(SESSION, { ...SIZE, execId: 'no' })).rejects.toMatchObject({
      code: 'EXEC_UNKNOWN',
    });
    expect(server.sessions.session.commands.size).toBe(0);
  });
});
