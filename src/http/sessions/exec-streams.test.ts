import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ScriptedServer } from '../scripted-server.double.ts';
import { EventConnection } from './event-reader.double.ts';
import type { ScriptedExec } from './scripted-exec.double.ts';
import { SESSION } from './scripted-sessions.double.ts';

const HERE = `/v1/sessions/${SESSION}`;
const JSON_TYPE = { 'content-type': 'application/json' };
const MiB = 1024 * 1024;

function openExec(server: ScriptedServer, body: object, { query = '', headers = {} } = {}) {
  return EventConnection.open({
    port: server.port,
    path: `${HERE}/exec${query}`,
    method: 'POST',
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify(body),
  });
}

function openOutput(server: ScriptedServer, { query = '', headers = {}, exec = 'exec_1' } = {}) {
  return EventConnection.open({ port: server.port, path: `${HERE}/execs/${exec}/output${query}`, headers });
}

/** Begins a command that goes on until the test ends it. */
function goesOn(server: ScriptedServer): void {
  server.sessions.session.onExec = () => undefined;
}

function firstExec(server: ScriptedServer): ScriptedExec {
  return server.sessions.session.findExec('exec_1');
}

test('[RS-05] a stream has its documented events, with ids, as the output comes', async () => {
  await using server = await ScriptedServer.start();
  goesOn(server);
  using connection = await openExec(server, { command: 'npm test' });
  expect([connection.status, connection.headers['content-type']]).toEqual([
    200,
    'text/event-stream; charset=utf-8',
  ]);
  expect(connection.headers).toMatchObject({ 'x-hotcell-exec-id': 'exec_1', 'cache-control': 'no-store' });
  const exec = firstExec(server);
  exec.print('stdout', 'PASS src/utils.test.ts');
  await expect.poll(() => connection.events.length).toBe(2);
  exec.print('stderr', 'warning\n');
  await expect.poll(() => connection.events.length).toBe(3);
  exec.end();
  await connection.ended;
  const seen = connection.events.map(({ type, data, lastEventId }) => [type, data, lastEventId]);
  expect(seen.slice(0, 3)).toEqual([
    ['start', '{"exec_id":"exec_1","from":0}', '0'],
    ['stdout', 'PASS src/utils.test.ts', '22'],
    ['stderr', 'warning\n', '30'],
  ]);
  const exit = connection.events.at(-1);
  expect([exit?.type, exit?.lastEventId]).toEqual(['exit', '30']);
  expect(exit?.data).toMatch(
    /^\{"exit_code":0,"cwd":"\/workspace\/proj_abc123","duration_ms":1234,"exec_id":/,
  );
});

test('[RS-05] "stream": true is enough, with and without a background', async () => {
  await using server = await ScriptedServer.start();
  for (const background of [false, true]) {
    using connection = await openExec(
      server,
      { command: 'x', stream: true, background },
      { headers: { accept: 'application/json' } },
    );
    await connection.ended;
    expect(connection.events.map(({ type }) => type)).toEqual(['start', 'exit']);
  }
});

test('[RS-05] the data form is what simple clients parse', async () => {
  await using server = await ScriptedServer.start();
  server.sessions.session.onExec = (exec) => {
    exec.print('stdout', 'one\ntwo\r\n');
    exec.cut(5);
    exec.end({ changedFiles: [{ path: 'a', change: 'added', size: 1, content: 'x' }] });
  };
  using connection = await openExec(server, { command: 'x' }, { query: '?format=data' });
  await connection.ended;
  expect(connection.events.map(({ type, lastEventId }) => [type, lastEventId])).toEqual([
    ['message', '9'],
    ['message', '14'],
    ['message', '14'],
  ]);
  const [output, cut, done] = connection.events.map(
    ({ data }) => JSON.parse(data) as Record<string, unknown>,
  );
  expect(output).toEqual({ type: 'stdout', data: 'one\ntwo\r\n' });
  expect(cut).toEqual({ type: 'cut', from: 9, to: 14 });
  expect(done).toMatchObject({
    type: 'done',
    exitCode: 0,
    cwd: '/workspace/proj_abc123',
    durationMs: 1234,
    changedFiles: [{ path: 'a', content: 'x' }],
    result: { exec_id: 'exec_1', end: { reason: 'exit' } },
  });
});

test('[RS-05] whoever reconnects with Last-Event-ID gets what it missed, while it runs and after its end', async () => {
  await using server = await ScriptedServer.start();
  goesOn(server);
  const lost = await openExec(server, { command: 'x' });
  const exec = firstExec(server);
  exec.print('stdout', 'one ');
  await expect.poll(() => lost.events.length).toBe(2);
  lost[Symbol.dispose]();
  await expect.poll(() => exec.followers).toBe(0);
  exec.print('stdout', 'two ');
  exec.print('stderr', 'three ');
  using second = await openOutput(server, { headers: { 'last-event-id': lost.parser.lastEventId } });
  await expect.poll(() => second.events.length).toBe(3);
  exec.end({ exitCode: 7 });
  await second.ended;
  expect(second.events.map(({ data }) => data).slice(1, 3)).toEqual(['two ', 'three ']);
  expect(second.events[0]).toMatchObject({ type: 'start', lastEventId: '4' });
  using afterwards = await openOutput(server, { query: '?from=0', headers: { 'last-event-id': '8' } });
  await afterwards.ended;
  expect(afterwards.events.map(({ type }) => type)).toEqual(['start', 'stderr', 'exit']);
  using fromStart = await openOutput(server, { query: '?from=2&format=data' });
  await fromStart.ended;
  expect(fromStart.events[0]?.data).toBe('{"type":"stdout","data":"e "}');
  expect(exec.calls.filter(([name]) => name === 'kill')).toEqual([]);
});

test('[RS-06] what is no longer kept is said', async () => {
  await using server = await ScriptedServer.start();
  server.sessions.session.onExec = (exec) => {
    exec.cut(1000);
    exec.print('stdout', 'end');
    exec.end();
  };
  using connection = await openExec(server, { command: 'x' });
  await connection.ended;
  expect(connection.events.map(({ type, data, lastEventId }) => [type, data, lastEventId])[1]).toEqual([
    'cut',
    '{"from":0,"to":1000}',
    '1000',
  ]);
});

test('[RS-05] a stream without news has comments', async () => {
  await using server = await ScriptedServer.start({ heartbeatMs: 10 });
  goesOn(server);
  using connection = await openExec(server, { command: 'sleep' });
  await expect.poll(() => connection.parser.comments.length).toBeGreaterThan(2);
  expect(connection.events).toHaveLength(1);
});

test('a client that goes away does not end its command, streamed or not', async () => {
  await using server = await ScriptedServer.start();
  goesOn(server);
  const streamed = await openExec(server, { command: 'x' });
  const exec = firstExec(server);
  await expect.poll(() => exec.followers).toBe(1);
  streamed[Symbol.dispose]();
  await expect.poll(() => exec.followers).toBe(0);
  const controller = new AbortController();
  const plain = fetch(`http://127.0.0.1:${server.port}${HERE}/exec`, {
    method: 'POST',
    headers: JSON_TYPE,
    body: '{"command":"x"}',
    signal: controller.signal,
  });
  await expect.poll(() => server.sessions.session.commands.size).toBe(2);
  controller.abort();
  await expect(plain).rejects.toThrow(/abort/i);
  await sleep(20);
  expect(server.sessions.session.execs().map(({ state }) => state)).toEqual(['running', 'running']);
});

interface FloodState {
  readonly port: number;
  readonly produced: number;
  readonly largest: number;
}

/** A server of its own whose command writes that much. */
class FloodServer implements Disposable {
  readonly #child: ChildProcess;

  constructor(totalBytes: number) {
    const program = fileURLToPath(new URL('flood-server.double.ts', import.meta.url));
    this.#child = fork(program, [String(totalBytes)], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
  }

  async next(): Promise<FloodState> {
    const [state] = (await once(this.#child, 'message')) as [FloodState];
    return state;
  }

  state(): Promise<FloodState> {
    const next = this.next();
    this.#child.send('state');
    return next;
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }
}

test.each(['', '?format=data'])(
  '[RS-06] a reader that stops reading costs no memory, and has all 200 MB when it goes on%s',
  async (query) => {
    using flood = new FloodServer(200 * MiB);
    const { port, largest: atRest } = await flood.next();
    using connection = await EventConnection.open({ port, path: `${HERE}/execs/exec_1/output${query}` });
    connection.response.pause();
    let before = { produced: -1 };
    for (let now = await flood.state(); now.produced !== before.produced; now = await flood.state()) {
      before = now;
      await sleep(200);
    }
    // What the sockets of both sides hold, and not more.
    expect(before.produced).toBeGreaterThan(0);
    expect(before.produced).toBeLessThan(24 * MiB);
    let received = 0;
    connection.response.removeAllListeners('data').on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    connection.response.resume();
    await connection.ended;
    const { produced, largest } = await flood.state();
    expect(produced).toBeGreaterThanOrEqual(200 * MiB);
    expect(received).toBeGreaterThan(produced);
    expect(largest - atRest).toBeLessThan(64 * MiB);
  },
);

test('[RS-05] a server that stops ends streams with a last word, and at once', async () => {
  const server = await ScriptedServer.start();
  goesOn(server);
  using named = await openExec(server, { command: 'x' });
  using data = await openOutput(server, { query: '?format=data' });
  const waiting = server.ask(`${HERE}/execs/exec_1?wait_s=600`);
  const plain = server.ask(`${HERE}/exec`, { method: 'POST', headers: JSON_TYPE, body: '{"command":"y"}' });
  await expect.poll(() => server.sessions.session.commands.size).toBe(2);
  await expect.poll(() => firstExec(server).followers).toBe(2);
  firstExec(server).print('stdout', 'so far');
  await expect.poll(() => named.events.length + data.events.length).toBe(3);
  const closed = server.app.close();
  await Promise.all([named.ended, data.ended]);
  expect(named.events.at(-1)).toMatchObject({ type: 'interrupted', lastEventId: '6' });
  expect(JSON.parse(named.events.at(-1)?.data ?? '')).toMatchObject({ code: 'SHUTTING_DOWN' });
  expect(JSON.parse(data.events.at(-1)?.data ?? '')).toMatchObject({
    type: 'interrupted',
    code: 'SHUTTING_DOWN',
  });
  expect([named.parser.lastEventId, named.parser.retryMs, data.parser.retryMs]).toEqual(['6', 1000, 1000]);
  expect((await waiting).json()).toMatchObject({ state: 'running' });
  const answer = await plain;
  expect([answer.status, answer.json()]).toMatchObject([503, { code: 'SHUTTING_DOWN' }]);
  expect(answer.text).toContain('exec_2');
  // Sooner than connections are cut by force.
  await expect(Promise.race([closed, sleep(3000, 'late')])).resolves.not.toBe('late');
});

test('[RS-22] a command that the server lets go of is interrupted, not ended', async () => {
  await using server = await ScriptedServer.start();
  goesOn(server);
  using named = await openExec(server, { command: 'x' });
  await expect.poll(() => firstExec(server).followers).toBe(1);
  firstExec(server).letGo();
  await named.ended;
  expect(named.events.map(({ type }) => type)).toEqual(['start', 'interrupted']);
});

test('pages of an allowed origin can reconnect and see which command it is', async () => {
  await using server = await ScriptedServer.start();
  const origin = 'http://localhost:3000';
  using connection = await openExec(server, { command: 'x' }, { headers: { origin } });
  expect(connection.headers['access-control-allow-origin']).toBe(origin);
  expect(connection.headers['access-control-expose-headers']).toContain('x-hotcell-exec-id');
  await connection.ended;
});
