import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { ScriptedServer } from '../http/scripted-server.double.ts';
import type { ScriptedExec } from '../http/sessions/scripted-exec.double.ts';
import { SESSION } from '../http/sessions/scripted-sessions.double.ts';
import { BreakingProxy } from '../../test/support/breaking-proxy.ts';
import type { ClientEvent } from './client-event.ts';
import { HttpRunnerClient } from './http-runner-client.ts';
import { RunnerError } from './runner-error.ts';
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

interface Seen {
  stdout: Buffer;
  stderr: Buffer;
  /** Of both streams, and of what was cut: where it begins. */
  places: number[];
  types: string[];
}

async function gather(events: AsyncIterable<ClientEvent>): Promise<Seen> {
  const seen: Seen = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), places: [], types: [] };
  for await (const event of events) {
    if (event.type === 'stdout' || event.type === 'stderr') {
      seen[event.type] = Buffer.concat([seen[event.type], event.bytes]);
      seen.places.push(event.from);
    } else seen.types.push(event.type);
    if (event.type === 'cut') seen.places.push(event.from, event.to);
  }
  return seen;
}

const toFacts = ({ stdout, stderr, types, places }: Seen) => ({
  stdout,
  stderr,
  types,
  inOrder: places.every((place, at) => at === 0 || place >= (places[at - 1] ?? 0)),
});

const STDOUT = Buffer.concat([
  Buffer.from('one\ntwo €\n\r\n'),
  Buffer.from([0xff, 0, 0xc3]),
  Buffer.from('\n\nevent: exit\n'),
]);
const STDERR = Buffer.from('data: oh 👩‍💻\r');

function script(exec: ScriptedExec): void {
  exec.print('stdout', STDOUT.subarray(0, 9));
  exec.print('stderr', STDERR);
  exec.cut(5);
  exec.print('stdout', STDOUT.subarray(9));
  exec.end({ exitCode: 3, ok: false });
}

describe('exec', () => {
  test(
    '[RS-20] a connection that breaks after any byte costs no byte and doubles none',
    { timeout: 120_000 },
    async () => {
      const { session } = server.sessions;
      session.onExec = script;
      const whole = { stdout: STDOUT, stderr: STDERR, types: ['start', 'cut', 'exit'], inOrder: true };
      // Before the headers are there nobody knows which command it is, so it is not begun again.
      const unknown = { code: 'NETWORK', isUnknown: true };
      let answerBytes = 0;
      let unknownBytes = 0;
      for (let cut = 1; answerBytes === 0; cut += STEP) {
        // Another address each time: connections that are kept for later would not be the first ones.
        await using breaking = await BreakingProxy.start(server.port);
        breaking.cutAfter = (connection) => (connection === 1 ? cut : Infinity);
        const client = new HttpRunnerClient({ baseUrl: breaking.url, retries: QUICK });
        const begun = session.calls.length;
        const outcome = await gather(client.execStream(SESSION, { command: 'x' })).then(
          toFacts,
          (error: RunnerError) => ({
            code: error.code,
            isUnknown: error.message.includes('whether POST'),
          }),
        );
        expect([cut, session.calls.length - begun]).toEqual([cut, 1]);
        expect([
          [cut, whole],
          [cut, unknown],
        ]).toContainEqual([cut, outcome]);
        if ('code' in outcome) unknownBytes = cut;
        else if (breaking.connections === 1) answerBytes = cut;
      }
      expect(unknownBytes).toBeGreaterThan(100);
      expect(answerBytes - unknownBytes).toBeGreaterThan(500);
    },
  );

  test('[RS-20] connections that all break are gone through until the end', async () => {
    server.sessions.session.onExec = (exec) => {
      for (let line = 0; line < 200; line += 1) exec.print('stdout', `line ${line}\n`);
      exec.end();
    };
    // Enough for the headers and some events.
    proxy.cutAfter = (connection) => 900 + ((connection * 37) % 200);
    const { stdout } = await gather(makeClient().execStream(SESSION, { command: 'x' }));
    expect(stdout.toString()).toBe(Array.from({ length: 200 }, (_, line) => `line ${line}\n`).join(''));
    expect(proxy.connections).toBeGreaterThan(5);
  });

  test('[RS-20] a server that never gets further is given up', async () => {
    server.sessions.session.onExec = script;
    proxy.cutAfter = (connection) => (connection === 1 ? 900 : 60);
    const notices: string[] = [];
    const client = new HttpRunnerClient({
      baseUrl: proxy.url,
      retries: { ...QUICK, reconnects: 5 },
      onRetry: ({ error }) => notices.push(error.code),
    });
    await expect(gather(client.execStream(SESSION, { command: 'x' }))).rejects.toMatchObject({
      code: 'NETWORK',
    });
    expect(notices).toEqual(Array.from({ length: 5 }, () => 'NETWORK'));
    expect(proxy.connections).toBe(6);
  });

  test('[RS-20, RS-22] a restart of the server in the middle is not noticed', async () => {
    await using second = new ScriptedServer({});
    const begun = Promise.withResolvers<ScriptedExec>();
    server.sessions.session.onExec = (exec) => {
      exec.print('stdout', 'before\n');
      begun.resolve(exec);
    };
    const seeing = gather(makeClient({ reconnects: 200 }).execStream(SESSION, { command: 'x' }));
    const first = await begun.promise;
    await expect.poll(() => first.followers).toBe(1);
    // Ended with the event `interrupted`; for a while nobody is there at all.
    await server.app.close();
    const adopted = second.sessions.session.addExec();
    expect(adopted.id).toBe(first.id);
    adopted.print('stdout', 'before\nafter\n');
    adopted.end();
    await second.app.listen({ host: '127.0.0.1', port: 0 });
    proxy.target = second.port;
    const { stdout, types } = await seeing;
    expect([stdout.toString(), types]).toEqual(['before\nafter\n', ['start', 'exit']]);
    expect(second.sessions.session.calls).toEqual([]);
  });

  test.each([
    ['the session is gone', (): void => void (server.sessions.failure = sessionError('SESSION_ENDED')), 410],
    ['the command is gone', (): void => server.sessions.session.commands.clear(), 404],
  ])('[RS-20] %s when the connection is made again: that is the error', async (_name, forget, status) => {
    const begun = Promise.withResolvers<ScriptedExec>();
    server.sessions.session.onExec = (exec) => begun.resolve(exec);
    const seeing = gather(makeClient().execStream(SESSION, { command: 'x' }));
    seeing.catch(() => undefined);
    const exec = await begun.promise;
    await expect.poll(() => exec.followers).toBe(1);
    forget();
    proxy.breakAll();
    await expect(seeing).rejects.toMatchObject({ status });
  });

  test('[RS-20] a connection that says nothing at all is given up and made again', async () => {
    const begun = Promise.withResolvers<ScriptedExec>();
    server.sessions.session.onExec = (exec) => begun.resolve(exec);
    const seeing = gather(
      makeClient({ silenceMs: 50, reconnects: 1000 }).execStream(SESSION, { command: 'x' }),
    );
    const exec = await begun.promise;
    await expect.poll(() => exec.calls.filter(([name]) => name === 'follow').length).toBeGreaterThan(2);
    exec.end();
    expect((await seeing).types).toEqual(['start', 'exit']);
  });

  test('[RS-20] leaving the iterator leaves nothing open, and the command alone', async () => {
    server.sessions.session.onExec = (exec) => exec.print('stdout', 'hello');
    for await (const event of makeClient().execStream(SESSION, { command: 'x' })) {
      if (event.type === 'stdout') break;
    }
    const exec = server.sessions.session.findExec('exec_1');
    await expect.poll(() => [exec.followers, proxy.open]).toEqual([0, 0]);
    expect(exec.calls.filter(([name]) => name === 'kill')).toEqual([]);
  });

  test('[RS-20] return takes effect while an event is waited for, and ends the command if asked', async () => {
    const events = makeClient().execStream(SESSION, { command: 'x' }, { killOnAbort: true });
    server.sessions.session.onExec = () => undefined;
    expect(await events.next()).toMatchObject({ value: { type: 'start', execId: 'exec_1' } });
    const waiting = events.next();
    waiting.catch(() => undefined);
    await events.return?.();
    await expect(waiting).rejects.toMatchObject({ code: 'CANCELLED' });
    const exec = server.sessions.session.findExec('exec_1');
    expect(exec.calls.at(-1)).toEqual(['kill']);
    await expect.poll(() => exec.followers).toBe(0);
  });

  test('[RS-20] a signal ends the following with a typed error', async () => {
    const controller = new AbortController();
    server.sessions.session.onExec = (exec) => exec.print('stdout', 'x');
    const seeing = (async () => {
      for await (const event of makeClient().execStream(
        SESSION,
        { command: 'x' },
        { signal: controller.signal },
      )) {
        if (event.type === 'stdout') controller.abort();
      }
    })();
    await expect(seeing).rejects.toBeInstanceOf(RunnerError);
    await expect(seeing).rejects.toMatchObject({ code: 'CANCELLED' });
    await expect.poll(() => proxy.open).toBe(0);
  });
});

function sessionError(code: 'SESSION_ENDED'): Error {
  return new HotcellError(code, 'it is over');
}
