import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import * as z from 'zod';
import { ERRORS, HotcellError, type ErrorCode } from '../../core/errors.ts';
import { ErrorReply } from '../../wire/execute.ts';
import { ScriptedServer, type Answer, type Ask } from '../scripted-server.double.ts';
import { SESSION } from './scripted-sessions.double.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const EVENTS = { accept: 'text/event-stream' };

let server: ScriptedServer;
beforeAll(async () => {
  server = await ScriptedServer.start();
});
beforeEach(() => {
  const { session } = server.sessions;
  session.calls.length = 0;
  session.commands.clear();
  session.addExec();
  session.addExec({ terminal: true });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const Documented = z.object({
  paths: z.record(
    z.string(),
    z.record(z.string(), z.object({ responses: z.record(z.string(), z.unknown()) })),
  ),
});
type Documented = z.infer<typeof Documented>;
let documented: Documented | undefined;

/** The answer is one of ours, names the field and a way out, is documented for the route, and nothing has happened. */
async function expectRefusal(
  answer: Answer,
  { code, field, route }: { code: ErrorCode; field?: string | undefined; route: readonly [string, string] },
): Promise<void> {
  const body = ErrorReply.parse(answer.json());
  expect([answer.status, body.code, body.field]).toEqual([ERRORS[code].status, code, field]);
  expect(body.hint).not.toBe('');
  expect(server.sessions.session.calls).toEqual([]);
  expect(server.sessions.session.commands.get('exec_1')?.calls).toEqual([]);
  const { paths } = (documented ??= Documented.parse((await server.ask('/openapi.json')).json()));
  const [method, path] = route;
  expect(JSON.stringify(paths[path]?.[method.toLowerCase()]?.responses[answer.status])).toContain(
    `"${code}"`,
  );
}

const UPLOAD = '/v1/sessions/{id}/upload';
const FILE = { path: 'a', content: '' };

test.each<[string, string, unknown, string | undefined]>([
  ['POST', '/v1/sessions', {}, 'project_id'],
  ['POST', '/v1/sessions', { project_id: 'p' }, 'runtime_type'],
  ['POST', '/v1/sessions', { project_id: 'p', runtime_type: 'cobol' }, 'runtime_type'],
  ['POST', '/v1/sessions', { project_id: '../etc', runtime_type: 'node' }, 'project_id'],
  ['POST', '/v1/sessions', { project_id: '..', runtime_type: 'node' }, 'project_id'],
  ['POST', '/v1/sessions', { project_id: 'a/b', runtime_type: 'node' }, 'project_id'],
  ['POST', '/v1/sessions', { project_id: 'a\0', runtime_type: 'node' }, 'project_id'],
  ['POST', '/v1/sessions', { project_id: '', runtime_type: 'node' }, 'project_id'],
  ['POST', '/v1/sessions', { project_id: 'x'.repeat(65), runtime_type: 'node' }, 'project_id'],
  ['POST', '/v1/sessions', { project_id: ['p'], runtime_type: 'node' }, 'project_id'],
  ['POST', '/v1/sessions', { project_id: 'p', runtime_type: 'node', user_id: '-rf' }, 'user_id'],
  ['POST', '/v1/sessions', { project_id: 'p', runtime_type: 'node', ttl_s: 0 }, 'ttl_s'],
  ['POST', '/v1/sessions', { project_id: 'p', runtime_type: 'node', ttl_s: 1e300 }, 'ttl_s'],
  ['POST', '/v1/sessions', { project_id: 'p', runtime_type: 'node', netwrok: true }, 'netwrok'],
  ['POST', '/v1/sessions', { project_id: 'p', runtime_type: 'node', limits: { cpus: -1 } }, 'limits.cpus'],
  ['POST', '/v1/sessions', { project_id: 'p', runtime_type: 'node', limits: { gpus: 1 } }, 'limits.gpus'],
  ['POST', '/v1/sessions', { project_id: 'p', runtime_type: 'node', network: ['1.2.3.4'] }, 'network[0]'],
  ['POST', '/v1/sessions', { project_id: 'p', runtime_type: 'node', network: 'all' }, 'network'],
  ['POST', '/v1/sessions/{id}/exec', {}, 'command'],
  ['POST', '/v1/sessions/{id}/exec', { command: '' }, 'command'],
  ['POST', '/v1/sessions/{id}/exec', { command: 7 }, 'command'],
  ['POST', '/v1/sessions/{id}/exec', { command: 'a\0b' }, 'command'],
  ['POST', '/v1/sessions/{id}/exec', { command: 'x'.repeat(128 * 1024 + 1) }, 'command'],
  ['POST', '/v1/sessions/{id}/exec', { command: '\ud800' }, 'command'],
  ['POST', '/v1/sessions/{id}/exec', { command: 'x', timeout_s: 0 }, 'timeout_s'],
  ['POST', '/v1/sessions/{id}/exec', { command: 'x', timeout_s: '5' }, 'timeout_s'],
  ['POST', '/v1/sessions/{id}/exec', { command: 'x', timeout: 5 }, 'timeout'],
  ['POST', '/v1/sessions/{id}/exec', { command: 'x', env: { 'A B': '' } }, 'env["A B"]'],
  ['POST', '/v1/sessions/{id}/exec', { command: 'x', env: { A: 1 } }, 'env.A'],
  ['POST', '/v1/sessions/{id}/exec', { command: 'x', env: [] }, 'env'],
  ['POST', '/v1/sessions/{id}/exec', { command: 'x', on_busy: 'queue' }, 'on_busy'],
  ['POST', '/v1/sessions/{id}/exec', { command: 'x', cwd: '\0' }, 'cwd'],
  ['POST', '/v1/sessions/{id}/execs/{exec_id}/stdin', { data: 'x!', encoding: 'base64' }, 'data'],
  ['POST', '/v1/sessions/{id}/execs/{exec_id}/stdin', { data: 1 }, 'data'],
  ['POST', '/v1/sessions/{id}/execs/{exec_id}/stdin', { text: 'x' }, 'text'],
  ['POST', '/v1/sessions/{id}/execs/{exec_id}/kill', { signal: 9 }, 'signal'],
  ['POST', '/v1/sessions/{id}/kill', { signal: 9 }, 'signal'],
  ['POST', '/v1/sessions/{id}/keep-alive', { ttl_s: 9 }, 'ttl_s'],
  ['POST', '/v1/sessions/{id}/pause', { now: true }, 'now'],
  ['POST', '/v1/sessions/{id}/resume', { now: true }, 'now'],
  ['DELETE', '/v1/sessions/{id}', { force: true }, 'force'],
  ['POST', UPLOAD, {}, 'files'],
  ['POST', UPLOAD, { files: {} }, 'files'],
  ['POST', UPLOAD, { files: [{ path: 'a' }] }, 'files[0].content'],
  ['POST', UPLOAD, { files: [FILE, { path: '../a', content: '' }] }, 'files[1].path'],
  ['POST', UPLOAD, { files: [{ path: '/etc/passwd', content: '' }] }, 'files[0].path'],
  ['POST', UPLOAD, { files: [{ path: 'a\0', content: '' }] }, 'files[0].path'],
  ['POST', UPLOAD, { files: [{ path: 'a//b', content: '' }] }, 'files[0].path'],
  ['POST', UPLOAD, { files: [{ path: 'a', content: '%', encoding: 'base64' }] }, 'files[0].content'],
  ['POST', UPLOAD, { files: [{ ...FILE, encoding: 'utf16' }] }, 'files[0].encoding'],
  ['POST', UPLOAD, { files: [{ ...FILE, mode: 0o4755 }] }, 'files[0].mode'],
  ['POST', UPLOAD, { files: [{ ...FILE, owner: 'root' }] }, 'files[0].owner'],
  ['POST', '/v1/sessions/{id}/sync', { files: [{ path: 'a' }] }, 'files[0].hash'],
  ['POST', '/v1/sessions/{id}/sync', { files: [{ path: 'a', hash: 'abc' }] }, 'files[0].hash'],
  ['POST', '/v1/sessions/{id}/sync', { files: [], delete: 'all' }, 'delete'],
  ['POST', '/v1/sessions/{id}/apply_patch', {}, 'diff'],
  ['POST', '/v1/sessions/{id}/apply_patch', { diff: '' }, 'diff'],
  ['POST', '/v1/sessions/{id}/apply_patch', { diff: '\0' }, 'diff'],
  ['PUT', '/v1/sessions/{id}/egress', {}, 'allow'],
  ['PUT', '/v1/sessions/{id}/egress', { allow: ['*'] }, 'allow[0]'],
  ['PUT', '/v1/sessions/{id}/egress', { allow: ['10.0.0.1'] }, 'allow[0]'],
  ['PUT', '/v1/sessions/{id}/egress', { allow: ['http://a.example'] }, 'allow[0]'],
])('[RS-01] [RS-02] [RS-08] [RS-09] %s %s with %j is 422 for %s', async (method, path, body, field) => {
  const text = JSON.stringify(body);
  const headers = { ...JSON_TYPE, 'content-length': String(Buffer.byteLength(text)) };
  const answer = await send(path, { method, headers, body: text });
  await expectRefusal(answer, { code: 'INVALID_REQUEST', field, route: [method, path] });
  expect(answer.text).not.toContain('Invalid input');
});

test.each<[string, string, string]>([
  ['/v1/sessions', 'limit=5', 'limit'],
  ['/v1/sessions/{id}', 'x=', 'x'],
  ['/v1/sessions/{id}/execs', 'all=1', 'all'],
  ['/v1/sessions/{id}/execs/{exec_id}', 'wait_s=-1', 'wait_s'],
  ['/v1/sessions/{id}/execs/{exec_id}', 'wait_s=601', 'wait_s'],
  ['/v1/sessions/{id}/execs/{exec_id}', 'wait_s=1e2', 'wait_s'],
  ['/v1/sessions/{id}/execs/{exec_id}', 'wait_s=', 'wait_s'],
  ['/v1/sessions/{id}/execs/{exec_id}', 'wait=5', 'wait'],
  ['/v1/sessions/{id}/execs/{exec_id}/output', 'from=-1', 'from'],
  ['/v1/sessions/{id}/execs/{exec_id}/output', 'from=0x10', 'from'],
  ['/v1/sessions/{id}/execs/{exec_id}/output', 'from=99999999999999999999', 'from'],
  ['/v1/sessions/{id}/execs/{exec_id}/output', 'from=1&from=2', 'from'],
  ['/v1/sessions/{id}/execs/{exec_id}/output', 'limit=0', 'limit'],
  ['/v1/sessions/{id}/execs/{exec_id}/output', 'limit=16777217', 'limit'],
  ['/v1/sessions/{id}/execs/{exec_id}/output', 'format=xml', 'format'],
  ['/v1/sessions/{id}/execs/{exec_id}/output', '__proto__=1', '__proto__'],
  ['/v1/sessions/{id}/changes', 'since=', 'since'],
  ['/v1/sessions/{id}/changes', 'since=a&since=b', 'since'],
  ['/v1/sessions/{id}/fs', 'path=', 'path'],
  ['/v1/sessions/{id}/fs', 'path=a%00b', 'path'],
  ['/v1/sessions/{id}/fs', 'path=a&path=b', 'path'],
  ['/v1/sessions/{id}/fs', `path=${'a'.repeat(4097)}`, 'path'],
  ['/v1/sessions/{id}/fs', 'file=a', 'file'],
  ['/v1/sessions/{id}/archive', 'path=a', 'path'],
  ['/v1/sessions/{id}/egress', 'a=b', 'a'],
])('[RS-10] [RS-11] GET %s?%s is 422 for %s', async (path, query, field) => {
  for (const headers of [{}, EVENTS]) {
    const answer = await send(path, { headers }, query);
    await expectRefusal(answer, { code: 'INVALID_REQUEST', field, route: ['GET', path] });
  }
});

test('[RS-05] the query of a command is checked before it runs', async () => {
  const path = '/v1/sessions/{id}/exec';
  for (const [query, field] of [
    ['format=xml', 'format'],
    ['stream=true', 'stream'],
  ] as const) {
    const answer = await send(path, { method: 'POST', headers: JSON_TYPE, body: '{"command":"x"}' }, query);
    await expectRefusal(answer, { code: 'INVALID_REQUEST', field, route: ['POST', path] });
  }
});

test.each(['abc', '-1', '1.5', '1e3', 'exec_1:5', '99999999999999999999', ' '])(
  '[RS-05] Last-Event-ID %j is refused by name',
  async (id) => {
    const path = '/v1/sessions/{id}/execs/{exec_id}/output';
    const answer = await send(path, { headers: { ...EVENTS, 'last-event-id': id } });
    await expectRefusal(answer, { code: 'INVALID_REQUEST', field: 'last-event-id', route: ['GET', path] });
  },
);

test('[RS-05] a client that reconnects by sending its command again does not run it twice', async () => {
  const headers = { ...JSON_TYPE, ...EVENTS, 'last-event-id': '4' };
  const path = '/v1/sessions/{id}/exec';
  const answer = await send(path, { method: 'POST', headers, body: '{"command":"rm x"}' });
  await expectRefusal(answer, { code: 'INVALID_REQUEST', field: 'last-event-id', route: ['POST', path] });
  expect(answer.text).toContain('/output');
});

const ROUTES: readonly (readonly [string, string])[] = [
  ['GET', '/v1/sessions/{id}'],
  ['DELETE', '/v1/sessions/{id}'],
  ['POST', '/v1/sessions/{id}/keep-alive'],
  ['POST', '/v1/sessions/{id}/pause'],
  ['POST', '/v1/sessions/{id}/resume'],
  ['POST', '/v1/sessions/{id}/exec'],
  ['GET', '/v1/sessions/{id}/execs'],
  ['GET', '/v1/sessions/{id}/execs/{exec_id}'],
  ['GET', '/v1/sessions/{id}/execs/{exec_id}/output'],
  ['POST', '/v1/sessions/{id}/execs/{exec_id}/stdin'],
  ['POST', '/v1/sessions/{id}/execs/{exec_id}/kill'],
  ['POST', '/v1/sessions/{id}/kill'],
  ['POST', UPLOAD],
  ['POST', '/v1/sessions/{id}/sync'],
  ['GET', '/v1/sessions/{id}/changes'],
  ['GET', '/v1/sessions/{id}/fs'],
  ['GET', '/v1/sessions/{id}/archive'],
  ['POST', '/v1/sessions/{id}/apply_patch'],
  ['GET', '/v1/sessions/{id}/egress'],
  ['PUT', '/v1/sessions/{id}/egress'],
  ['GET', '/v1/sessions/{id}/terminal'],
];

test.each(ROUTES)(
  '[RS-12] %s %s: unknown session 404, ended session 410 with the reason',
  async (method, path) => {
    const ask =
      method === 'POST' || method === 'PUT' ? { method, headers: JSON_TYPE, body: '{' } : { method };
    for (const id of ['session_2', 'session%2F1', '..%2f..%2fetc', '%00', 'x'.repeat(90), "' OR 1=1 --", 'é'])
      await expectRefusal(
        await server.ask(path.replace('{id}', encodeURI(id)).replace('{exec_id}', 'exec_1'), ask),
        {
          code: 'SESSION_UNKNOWN',
          route: [method, path],
        },
      );
    const ended = await server.ask(path.replace('{id}', 'session_old').replace('{exec_id}', 'exec_1'), ask);
    await expectRefusal(ended, { code: 'SESSION_ENDED', route: [method, path] });
    expect(ended.json()).toMatchObject({ detail: 'the session ended: no request came' });
  },
);

test.each(ROUTES.filter(([, path]) => path.includes('{exec_id}')))(
  '[RS-12] %s %s: an unknown command is 404',
  async (method, path) => {
    const ask = method === 'POST' ? { method, headers: JSON_TYPE, body: '{}' } : { method };
    for (const id of ['exec_9', '..', '..%2fexec_1', '%2e%2e', 'exec_1%00'])
      await expectRefusal(await server.ask(path.replace('{id}', SESSION).replace('{exec_id}', id), ask), {
        code: 'EXEC_UNKNOWN',
        route: [method, path],
      });
  },
);

const WITH_BODY = ROUTES.filter(([method]) => method === 'POST' || method === 'PUT');

test.each(WITH_BODY)('[RS-02] %s %s: what is no JSON object is refused', async (method, path) => {
  for (const body of ['{', '[]', 'null', '"x"', '{"__proto__":{}}', Buffer.from([0x7b, 0xff])]) {
    const answer = await send(path, { method, headers: JSON_TYPE, body });
    await expectRefusal(answer, { code: 'INVALID_JSON', route: [method, path] });
  }
  for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
    const answer = await send(path, { method, headers: { 'content-type': type }, body: '{}' });
    await expectRefusal(answer, { code: 'UNSUPPORTED_MEDIA_TYPE', route: [method, path] });
  }
});

test.each(WITH_BODY)('[RS-08] %s %s has a limit for bodies', async (method, path) => {
  const carriesMuch = /exec$|stdin|upload|sync|apply_patch/.test(path);
  const limit = carriesMuch ? 1024 * 1024 : 100 * 1024;
  const answer = await send(path, { method, headers: JSON_TYPE, body: 'x'.repeat(limit + 1) });
  await expectRefusal(answer, { code: 'BODY_TOO_LARGE', route: [method, path] });
  expect(answer.json()).toMatchObject({ detail: `the body has more than ${limit} bytes` });
});

test('[RS-08] an upload may be larger than a program', async () => {
  const files = [{ path: 'a', content: 'x'.repeat(500_000) }];
  const answer = await send(UPLOAD, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ files }) });
  expect([answer.status, answer.json()]).toEqual([200, { synced: 1 }]);
  const tooMuch = JSON.stringify({ code: 'x'.repeat(500_000) });
  expect((await server.executeRaw(tooMuch)).status).toBe(413);
});

test('foreign pages reach no route of sessions', async () => {
  for (const [method, path] of ROUTES) {
    for (const headers of [{ origin: 'https://evil.example' }, { host: 'evil.example' }]) {
      const answer = await send(path, { method, headers: { ...headers, ...JSON_TYPE } });
      expect([path, answer.status]).toEqual([path, 403]);
    }
  }
  expect(server.sessions.session.calls).toEqual([]);
});

test('input for a command that has ended is refused', async () => {
  const path = '/v1/sessions/{id}/execs/{exec_id}/stdin';
  const exec = server.sessions.session.commands.get('exec_1');
  Object.assign(exec ?? {}, { failing: { write: new HotcellError('EXEC_ENDED', 'the command has ended') } });
  const answer = await send(path, { method: 'POST', headers: JSON_TYPE, body: '{"data":"x"}' });
  await expectRefusal(answer, { code: 'EXEC_ENDED', route: ['POST', path] });
});

function send(path: string, ask: Ask, query = ''): Promise<Answer> {
  const filled = path.replace('{id}', SESSION).replace('{exec_id}', 'exec_1');
  return server.ask(query === '' ? filled : `${filled}?${query}`, ask);
}
