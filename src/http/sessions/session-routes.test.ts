import { beforeEach, describe, expect, test } from 'vitest';
import { HotcellError, type ErrorCode } from '../../core/errors.ts';
import { ScriptedServer, type Ask } from '../scripted-server.double.ts';
import {
  CHANGES_EXAMPLE,
  EGRESS_EXAMPLE,
  FS_EXAMPLE,
  PATCH_REPLY_EXAMPLE,
  SESSION_DETAIL_EXAMPLE,
  SESSION_EXAMPLE,
  SYNC_REPLY_EXAMPLE,
} from './openapi-session-examples.ts';
import { SESSION } from './scripted-sessions.double.ts';

const HERE = `/v1/sessions/${SESSION}`;
const post = (body: unknown): Ask => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});
const HASH = 'a'.repeat(64);

describe('every route reaches its use case', () => {
  test.each<[string, Ask, unknown, unknown[]?]>([
    [HERE, {}, SESSION_DETAIL_EXAMPLE, ['detail']],
    [HERE, { method: 'DELETE' }, { destroyed: true }, ['destroy']],
    [`${HERE}/keep-alive`, { method: 'POST' }, SESSION_EXAMPLE, ['keepAlive']],
    [`${HERE}/keep-alive`, post({}), SESSION_EXAMPLE, ['keepAlive']],
    [`${HERE}/pause`, { method: 'POST' }, { ...SESSION_EXAMPLE, state: 'paused' }, ['pause']],
    [`${HERE}/resume`, { method: 'POST' }, SESSION_EXAMPLE, ['resume']],
    [`${HERE}/kill`, { method: 'POST' }, { killed: false, exec_ids: [] }, ['kill']],
    [`${HERE}/execs`, {}, { execs: [] }],
    [
      `${HERE}/upload`,
      post({ files: [{ path: 'a', content: 'b' }] }),
      { synced: 1 },
      ['upload', [{ path: 'a', content: 'b', encoding: 'utf8' }]],
    ],
    [
      `${HERE}/sync`,
      post({ files: [{ path: 'a', hash: HASH }] }),
      SYNC_REPLY_EXAMPLE,
      ['sync', { files: [{ path: 'a', hash: HASH, encoding: 'utf8' }], delete: true }],
    ],
    [`${HERE}/changes`, {}, CHANGES_EXAMPLE, ['changes', undefined]],
    [`${HERE}/changes?since=17`, {}, CHANGES_EXAMPLE, ['changes', '17']],
    [`${HERE}/fs`, {}, FS_EXAMPLE, ['read', '.']],
    [`${HERE}/fs?path=src%2Fa%20b.ts`, {}, FS_EXAMPLE, ['read', 'src/a b.ts']],
    [`${HERE}/apply_patch`, post({ diff: '--- a' }), PATCH_REPLY_EXAMPLE, ['applyPatch', '--- a']],
    [`${HERE}/egress`, {}, EGRESS_EXAMPLE, ['egress']],
    [
      `${HERE}/egress`,
      { ...post({ allow: ['npm'] }), method: 'PUT' },
      { ...EGRESS_EXAMPLE, allow: ['npm'] },
      ['setEgress', ['npm']],
    ],
  ])('[RS-08] [RS-09] [RS-10] [RS-11] [RS-12] %s %j', async (path, ask, body, call) => {
    await using server = await ScriptedServer.start();
    const answer = await server.ask(path, ask);
    expect([answer.status, answer.json()]).toEqual([200, body]);
    expect(server.sessions.session.calls).toEqual(call === undefined ? [] : [call]);
  });

  test('[RS-01] a session is made with 201, and listed', async () => {
    await using server = await ScriptedServer.start();
    const made = await server.ask('/v1/sessions', post({ project_id: 'p', runtime_type: 'node' }));
    expect([made.status, made.json()]).toEqual([201, { ...SESSION_EXAMPLE, session_id: SESSION }]);
    expect(server.sessions.created).toEqual([
      {
        project: 'p',
        runtime: 'node',
        network: false,
        dotenv: false,
        setup: false,
        limits: {},
      },
    ]);
    expect((await server.ask('/v1/sessions')).json()).toEqual({ sessions: [SESSION_EXAMPLE] });
  });

  test('[RS-12] an empty body is as good as none where none is needed', async () => {
    await using server = await ScriptedServer.start();
    const headers = { 'content-type': 'application/json' };
    for (const [path, method] of [
      [`${HERE}/kill`, 'POST'],
      [`${HERE}/pause`, 'POST'],
      [HERE, 'DELETE'],
    ] as const) {
      expect((await server.ask(path, { method, headers, body: '' })).status).toBe(200);
    }
  });

  test('[RS-11] the workspace comes as a tar archive, piece by piece', async () => {
    await using server = await ScriptedServer.start();
    server.sessions.session.chunks = async function* chunks() {
      for (const part of ['one ', 'two ', 'three']) yield await Promise.resolve(Buffer.from(part));
    };
    const answer = await server.ask(`${HERE}/archive`);
    expect([answer.status, answer.headers['content-type'], answer.text]).toEqual([
      200,
      'application/x-tar',
      'one two three',
    ]);
    expect(answer.headers['content-disposition']).toBe('attachment; filename="proj_abc123.tar"');
    expect((await server.ask(`${HERE}/archive`, { method: 'HEAD' })).status).toBe(405);
  });

  test('[RS-11] an archive that fails in the middle is cut, so that nobody takes it for complete', async () => {
    await using server = await ScriptedServer.start();
    server.sessions.session.chunks = async function* chunks() {
      yield await Promise.resolve(Buffer.alloc(100_000));
      throw new HotcellError('CELL_LOST', 'gone');
    };
    await expect(server.ask(`${HERE}/archive`)).rejects.toThrow(/aborted|hang up|reset/i);
    expect(server.logLines).toContainEqual({
      level: 'error',
      fields: { error: 'gone' },
      message: 'archive cut',
    });
  });
});

describe('[RS-18] callers', () => {
  const KEY_OF_B = 'db7de3f6e1f39e5a6f6ec2b0a6f3f0f6'.slice(0, 20);

  test('the key decides whose request it is; headers about users do not', async () => {
    const { createHash } = await import('node:crypto');
    const keySha256 = createHash('sha256').update(KEY_OF_B).digest('hex');
    await using server = await ScriptedServer.start({
      apiKey: 'key-of-a-12345',
      tenants: { b: { keySha256, quotas: {} } },
    });
    const claims = { 'x-user-id': 'root', 'x-project-id': 'other', 'x-tenant': 'b' };
    const as = (key: string) =>
      server.ask('/v1/sessions', { headers: { ...claims, authorization: `Bearer ${key}` } });
    expect((await as('key-of-a-12345')).status).toBe(200);
    expect((await as(KEY_OF_B)).status).toBe(200);
    expect((await as('somebody-else')).status).toBe(401);
    expect((await server.ask(HERE, { headers: claims })).status).toBe(401);
    expect(server.sessions.callers).toEqual(['default', 'b']);
  });

  test('a key in a subprotocol counts for WebSockets only', async () => {
    await using server = await ScriptedServer.start({ apiKey: 'key-of-a-12345' });
    const key = Buffer.from('key-of-a-12345').toString('base64url');
    const headers = { 'sec-websocket-protocol': `hotcell.bearer.${key}` };
    expect((await server.ask('/v1/sessions', { headers })).status).toBe(401);
  });
});

describe('what the use case says comes out', () => {
  test.each<[ErrorCode, number]>([
    ['QUOTA_EXCEEDED', 429],
    ['RATE_LIMITED', 429],
    ['CELL_START_FAILED', 503],
    ['LIMIT_TOO_HIGH', 422],
  ])('[RS-18] create refused with %s answers %d', async (code, status) => {
    await using server = await ScriptedServer.start();
    server.sessions.failure = new HotcellError(code, 'because', { retryAfterSeconds: 2.5, field: 'limits' });
    const answer = await server.ask('/v1/sessions', post({ project_id: 'p', runtime_type: 'node' }));
    expect([answer.status, answer.headers['retry-after'], answer.json()]).toEqual([
      status,
      '3',
      { detail: 'because', code, field: 'limits', hint: expect.any(String) },
    ]);
  });

  test('[RS-16] [RS-21] a command that is refused says why', async () => {
    await using server = await ScriptedServer.start();
    for (const [code, status] of [
      ['COMMAND_REFUSED', 403],
      ['SESSION_BUSY', 409],
      ['SESSION_PAUSED', 409],
    ] as const) {
      server.sessions.session.failing = { exec: new HotcellError(code, 'the rule "sudo"') };
      for (const accept of ['application/json', 'text/event-stream']) {
        const ask = post({ command: 'sudo', on_busy: 'reject' });
        const answer = await server.ask(`${HERE}/exec`, { ...ask, headers: { ...ask.headers, accept } });
        expect([answer.status, answer.json()]).toMatchObject([status, { code, detail: 'the rule "sudo"' }]);
      }
    }
  });

  test('without sessions every route says why there are none', async () => {
    await using server = await ScriptedServer.start({ sessionsProblem: 'the driver cannot keep cells' });
    for (const [path, ask] of [
      ['/v1/sessions', post({ project_id: 'p', runtime_type: 'node' })],
      ['/v1/sessions', post({ project_id: 'p' })],
      ['/v1/sessions', {}],
      [HERE, {}],
      [`${HERE}/exec`, post({ command: 'true' })],
    ] as const) {
      const answer = await server.ask(path, ask);
      expect([answer.status, answer.json()]).toMatchObject([
        503,
        { code: 'SESSIONS_UNAVAILABLE', detail: 'the driver cannot keep cells' },
      ]);
    }
  });
});

describe('commands', () => {
  let server: ScriptedServer;
  beforeEach(async () => {
    server = await ScriptedServer.start();
    return () => server[Symbol.asyncDispose]();
  });

  test('[RS-02] a command answers with its result and its output', async () => {
    server.sessions.session.onExec = (exec) => {
      exec.print('stdout', 'out');
      exec.print('stderr', 'err');
      exec.end({ exitCode: 3, ok: false });
    };
    const answer = await server.ask(
      `${HERE}/exec`,
      post({ command: 'npm test', timeout_s: 600, reset_cwd: false, env: { NODE_ENV: 'test' } }),
    );
    expect([answer.status, answer.json()]).toMatchObject([
      200,
      {
        ok: false,
        stdout: 'out',
        stderr: 'err',
        exit_code: 3,
        cwd: '/workspace/proj_abc123',
        duration_ms: 1234,
      },
    ]);
    expect(server.sessions.session.calls).toMatchObject([
      ['exec', { command: 'npm test', timeoutMs: 600_000, env: { NODE_ENV: 'test' }, onBusy: 'wait' }],
    ]);
  });

  test('a command in the background answers at once with 202', async () => {
    server.sessions.session.onExec = () => undefined;
    const answer = await server.ask(`${HERE}/exec`, post({ command: 'sleep 9', background: true }));
    expect([answer.status, answer.json()]).toEqual([202, { exec_id: 'exec_1', state: 'running' }]);
    expect((await server.ask(`${HERE}/execs`)).json()).toMatchObject({
      execs: [{ exec_id: 'exec_1', state: 'running', background: true, result: null }],
    });
  });

  test('waiting for a command ends with it, or with the time', async () => {
    const exec = server.sessions.session.addExec();
    const waiting = server.ask(`${HERE}/execs/exec_1?wait_s=600`);
    exec.end();
    expect((await waiting).json()).toMatchObject({ state: 'ended', result: { exit_code: 0 } });
    server.sessions.session.addExec();
    expect((await server.ask(`${HERE}/execs/exec_2?wait_s=1`)).json()).toMatchObject({ state: 'running' });
    expect((await server.ask(`${HERE}/execs/exec_2`)).json()).toMatchObject({ state: 'running' });
  });

  test('a client that goes away while its command waits takes it out of the queue', async () => {
    const waiting = Promise.withResolvers<AbortSignal>();
    server.sessions.session.onExec = (_exec, signal) => {
      waiting.resolve(signal);
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new HotcellError('CANCELLED', 'nobody waits')));
      });
    };
    const controller = new AbortController();
    const request = fetch(`http://127.0.0.1:${server.port}${HERE}/exec`, {
      ...post({ command: 'x' }),
      body: '{"command":"x"}',
      signal: controller.signal,
    });
    const signal = await waiting.promise;
    controller.abort();
    await expect(request).rejects.toThrow(/abort/i);
    await expect.poll(() => signal.aborted).toBe(true);
  });

  test('[RS-12] input, its end and a kill reach the command', async () => {
    const exec = server.sessions.session.addExec();
    const at = `${HERE}/execs/exec_1`;
    expect((await server.ask(`${at}/stdin`, post({ data: 'ä' }))).json()).toEqual({ written: 2 });
    const binary = post({ data: 'AP8=', encoding: 'base64', eof: true });
    expect((await server.ask(`${at}/stdin`, binary)).json()).toEqual({ written: 2 });
    expect((await server.ask(`${at}/kill`, { method: 'POST' })).json()).toEqual({
      killed: true,
      exec_ids: ['exec_1'],
    });
    expect(exec.calls).toEqual([['write', '\u00c3\u00a4'], ['write', '\0\u00ff'], ['closeStdin'], ['kill']]);
    expect((await server.ask(`${at}/kill`, { method: 'POST' })).json()).toEqual({
      killed: false,
      exec_ids: [],
    });
  });

  test('output is read from where one asks', async () => {
    const exec = server.sessions.session.addExec();
    const at = `${HERE}/execs/exec_1/output`;
    expect((await server.ask(at)).json()).toMatchObject({ from: 0, next: 0, result: null });
    await server.ask(`${at}?from=7&limit=100`);
    // Last-Event-ID belongs to streams.
    await server.ask(`${at}?from=7&limit=100`, { headers: { 'last-event-id': '9' } });
    expect(exec.calls).toEqual([
      ['read', 0, 1_048_576],
      ['read', 7, 100],
      ['read', 7, 100],
    ]);
  });
});
