import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ScriptedServer, type Answer } from './scripted-server.double.ts';

let server: ScriptedServer;
beforeAll(async () => {
  server = await ScriptedServer.start();
});
beforeEach(() => {
  server.runRequests.length = 0;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const file = (changes: object) => ({ code: '', files: [{ path: 'a', content: '', ...changes }] });

test.each<[string, string, unknown]>([
  ['code', 'code: is missing', {}],
  ['code', 'code: must be a string, got null', { code: null }],
  ['code', 'code: must be a string, got number', { code: 1 }],
  ['code', 'code: must be a string, got array', { code: ['x'] }],
  ['code', 'code: must be a string, got object', { code: { code: { code: '' } } }],
  ['code', 'code: must not contain NUL characters', { code: 'a\0b' }],
  ['code', 'code: must be well-formed Unicode (it has a lone surrogate)', { code: '\ud800' }],
  ['stdin', 'stdin: must be a string, got boolean', { code: '', stdin: true }],
  ['stdin', 'stdin: must be well-formed Unicode (it has a lone surrogate)', { code: '', stdin: 'x\udfff' }],
  ['args', 'args: must be an array, got string', { code: '', args: '-v' }],
  ['args', 'args: must have at most 256 items', { code: '', args: Array(257).fill('') }],
  ['args[1]', 'args[1]: must be a string, got number', { code: '', args: ['', 7] }],
  ['args[0]', 'args[0]: must not contain NUL characters', { code: '', args: ['\0'] }],
  ['env', 'env: must be an object, got array', { code: '', env: [] }],
  ['env', 'env: must be an object, got string', { code: '', env: 'A=1' }],
  ['env.A', 'env.A: must be a string, got number', { code: '', env: { A: 1 } }],
  ['env.A', 'env.A: must not contain NUL characters', { code: '', env: { A: '\0' } }],
  ['env["1a"]', 'env["1a"]: a variable name has letters, digits and _', { code: '', env: { '1a': '' } }],
  ['env["A=B"]', 'env["A=B"]: a variable name has letters, digits and _', { code: '', env: { 'A=B': '' } }],
  ['files', 'files: must be an array, got object', { code: '', files: {} }],
  ['files[0]', 'files[0]: must be an object, got null', { code: '', files: [null] }],
  [
    'files',
    'files: must have at most 256 items',
    { code: '', files: Array.from({ length: 257 }, () => ({ path: 'a', content: '' })) },
  ],
  ['files[0].path', 'files[0].path: is missing', { code: '', files: [{ content: '' }] }],
  ['files[0].path', 'files[0].path: must be a string, got number', file({ path: 1 })],
  ['files[0].path', 'files[0].path: must not be empty', file({ path: '' })],
  ['files[0].path', 'files[0].path: must not have empty, . or .. parts', file({ path: '../a' })],
  ['files[0].path', 'files[0].path: must be relative, with / between its parts', file({ path: '/a' })],
  [
    'files[0].path',
    'files[0].path: must have at most 1024 characters',
    file({ path: 'a/'.repeat(600) + 'a' }),
  ],
  ['files[0].content', 'files[0].content: is missing', { code: '', files: [{ path: 'a' }] }],
  [
    'files[0].content',
    'files[0].content: must be base64 when encoding is base64',
    file({ content: '!', encoding: 'base64' }),
  ],
  ['files[0].encoding', 'files[0].encoding: must be one of "utf8", "base64"', file({ encoding: 'hex' })],
  [
    'files[0].mode',
    'files[0]: unknown field "mode"; known fields: path, content, encoding',
    file({ mode: 7 }),
  ],
  ['timeout_ms', 'timeout_ms: must be a number, got string', { code: '', timeout_ms: '100' }],
  ['timeout_ms', 'timeout_ms: must be a whole number, got 10.5', { code: '', timeout_ms: 10.5 }],
  ['timeout_ms', 'timeout_ms: must be at least 10', { code: '', timeout_ms: -1 }],
  ['timeout_ms', 'timeout_ms: must be at most 9007199254740991', { code: '', timeout_ms: 1e300 }],
  ['timeout_ms', 'timeout_ms: must be a number, got null', { code: '', timeout_ms: Number.NaN }],
  ['memory_mb', 'memory_mb: must be at least 8', { code: '', memory_mb: 0 }],
  ['memory_mb', 'memory_mb: must be a number, got array', { code: '', memory_mb: [64] }],
])('[CX-07] %s: %s', async (field, detail, body) => {
  const refusal = { status: 422, ran: 0, code: 'INVALID_REQUEST', field, detail, hint: expect.any(String) };
  expect(seen(await server.execute(body))).toEqual(refusal);
});

test('[CX-07] a number too large for JavaScript is refused, not taken for endless', async () => {
  const answer = await server.executeRaw('{"code":"","timeout_ms":1e400}');
  expect(answer.json()).toMatchObject({ detail: 'timeout_ms: must be a number, got Infinity' });
});

test('[CX-07] a misspelt field is refused with the names that there are', async () => {
  const answer = await server.execute({ code: '', tiemout_ms: 5 });
  expect(answer.json()).toMatchObject({
    detail: 'unknown field "tiemout_ms"; known fields: code, stdin, args, env, files, timeout_ms, memory_mb',
    field: 'tiemout_ms',
  });
});

test('[CX-07] only the first problems are told, and long names are cut', async () => {
  const answer = await server.execute({ args: 1, env: 1, files: 1, stdin: 1, ['x'.repeat(5000)]: 1 });
  expect(answer.json()).toMatchObject({
    detail: expect.stringMatching(/^code: is missing; stdin: .*; and 3 more$/),
  });
  const long = await server.execute({ code: '', ['y'.repeat(5000)]: 1 });
  expect(long.text.length).toBeLessThan(1000);
});

test.each<[string, string | Uint8Array, RegExp]>([
  ['an empty body', '', /^the body is empty$/],
  ['text that is no JSON', 'print(1)', /^the body is not JSON: /],
  ['JSON that breaks off', '{"code": "x"', /position 12/],
  ['an array', '[]', /^the body must be a JSON object, got array$/],
  ['a string', '"code"', /^the body must be a JSON object, got string$/],
  ['null', 'null', /^the body must be a JSON object, got null$/],
  ['NaN', '{"code": NaN}', /^the body is not JSON: /],
  ['two objects', '{"code":""}{"code":""}', /position 11/],
  [
    'bytes that are no UTF-8',
    Buffer.from([...Buffer.from('{"code":"'), 0xff, 0xfe, ...Buffer.from('"}')]),
    /UTF-8/,
  ],
  [
    'a surrogate in UTF-8',
    Buffer.from([...Buffer.from('{"code":"'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')]),
    /UTF-8/,
  ],
  ['UTF-16', Buffer.from('{"code":""}', 'utf16le'), /not JSON/],
  ['nesting without an end', '['.repeat(100_000), /not JSON/],
  ['the key __proto__', '{"code":"","__proto__":{"timeout_ms":20}}', /"__proto__" is not allowed/],
  [
    'the key __proto__ with escapes',
    String.raw`{"code":"","\u005f_proto__":{}}`,
    /"__proto__" is not allowed/,
  ],
  ['the variable __proto__', '{"code":"","env":{"__proto__":"x"}}', /"__proto__" is not allowed/],
])('[CX-07] %s is refused with 400', async (_name, body, detail) => {
  const answer = await server.executeRaw(body);
  const refusal = { status: 400, ran: 0, code: 'INVALID_JSON', detail: expect.stringMatching(detail) };
  expect(seen(answer)).toEqual({ ...refusal, hint: expect.any(String) });
});

test('[CX-07] deep nesting and the key constructor are ordinary mistakes', async () => {
  const deep = `{"code":${'['.repeat(50_000)}${']'.repeat(50_000)},"x":"__proto__"}`;
  expect((await server.executeRaw(deep)).status).toBe(422);
  expect((await server.executeRaw('{"code":"","constructor":{"prototype":{}}}')).status).toBe(422);
});

test('code may speak of __proto__, and a byte order mark is no mistake', async () => {
  expect((await server.execute({ code: 'x.__proto__ = "__proto__"' })).status).toBe(200);
  expect((await server.executeRaw('\ufeff{"code":"1"}')).status).toBe(200);
});

test('[CX-07] a body of exactly 100 KB runs, one byte more is 413', async () => {
  const frame = '{"code":""}'.length;
  const exact = JSON.stringify({ code: 'x'.repeat(100 * 1024 - frame) });
  expect(Buffer.byteLength(exact)).toBe(102_400);
  const expected = {
    status: 413,
    ran: 0,
    code: 'BODY_TOO_LARGE',
    detail: 'the body has more than 102400 bytes',
  };
  const chunked = { 'transfer-encoding': 'chunked' };
  expect(seen(await server.executeRaw(`${exact} `))).toMatchObject(expected);
  expect(seen(await server.executeRaw(`${exact} `, chunked))).toMatchObject(expected);
  expect((await server.executeRaw(exact)).status).toBe(200);
  expect((await server.executeRaw(exact, chunked)).status).toBe(200);
});

/** What the client saw, and whether anything ran. */
function seen(answer: Answer): object {
  return { status: answer.status, ran: server.runRequests.length, ...Object(answer.json()) };
}
