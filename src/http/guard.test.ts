import { afterAll, beforeAll, expect, test } from 'vitest';
import { ScriptedServer } from './scripted-server.double.ts';

const RUN = '{"code":""}';

let server: ScriptedServer;
beforeAll(async () => {
  server = await ScriptedServer.start({ allowedHosts: ['Box.Internal', 'other.internal:8443'] });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

test.each([
  'localhost',
  'LOCALHOST:8000',
  '127.0.0.1',
  '127.0.0.1:8000',
  '192.168.1.20:8000',
  '[::1]',
  '[::1]:8000',
  'box.internal',
  'BOX.internal:1234',
  'other.internal:8443',
])('[CX-17] the host %s is served', async (host) => {
  expect((await server.ask('/health', { headers: { host } })).status).toBe(200);
});

test.each([
  'evil.example',
  'evil.example:8000',
  'localhost.evil.example',
  'evil.localhost',
  'localhost.',
  'localhost@evil.example',
  'localhost:8000:1',
  'localhost:abc',
  'localhost/',
  '127.0.0.1.evil.example',
  '2130706433',
  '0x7f.1',
  '[::1',
  '[evil]',
  '::1',
  'other.internal',
  'other.internal:1',
])('[CX-17] a name that an attacker can rebind is refused: host %j', async (host) => {
  for (const path of ['/health', '/docs', '/nowhere']) {
    const answer = await server.ask(path, { headers: { host } });
    expect([answer.status, answer.json()]).toEqual([403, expect.objectContaining({ code: 'HOST_REFUSED' })]);
    expect(answer.text).toContain(JSON.stringify(JSON.stringify(host)).slice(1, -1));
  }
  expect((await server.executeRaw(RUN, { host })).status).toBe(403);
});

test('[CX-17] a page of an allowed origin may run code and read the answer', async () => {
  const answer = await server.executeRaw(RUN, { origin: 'http://localhost:3000' });
  expect([answer.status, answer.headers['access-control-allow-origin'], answer.headers.vary]).toEqual([
    200,
    'http://localhost:3000',
    'Origin',
  ]);
  expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
});

test('[CX-17] a page of an allowed origin may read errors too', async () => {
  const headers = { origin: 'http://localhost:3000' };
  for (const answer of [
    await server.executeRaw('{', headers),
    await server.executeRaw(RUN, { ...headers, 'content-type': 'text/plain' }),
    await server.ask('/nowhere', { headers }),
  ]) {
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.headers['access-control-allow-origin']).toBe('http://localhost:3000');
  }
});

test.each([
  ['localhost:8000', 'http://localhost:8000'],
  ['127.0.0.1:8000', 'http://127.0.0.1:8000'],
  ['[::1]:8000', 'http://[::1]:8000'],
  ['LocalHost:80', 'http://localhost'],
  ['box.internal', 'https://box.internal'],
])('[CX-17] a page that this server delivered as %s may call it from %s', async (host, origin) => {
  expect((await server.executeRaw(RUN, { host, origin })).status).toBe(200);
});

test.each([
  ['localhost:8000', 'https://evil.example'],
  ['localhost:8000', 'null'],
  ['localhost:8000', ''],
  ['localhost:8000', 'http://localhost'],
  ['localhost:8000', 'http://localhost:8001'],
  ['localhost:8000', 'http://127.0.0.1:8000'],
  ['localhost:8000', 'http://localhost:8000/'],
  ['localhost:8000', 'http://localhost:8000@evil.example'],
  ['localhost:8000', 'http://localhost:8000.evil.example'],
  ['localhost:8000', 'file://'],
  ['localhost:8000', 'chrome-extension://abc'],
  ['localhost:8000', 'https://localhost:3000'],
  ['localhost:8000', 'http://localhost:30000'],
  ['localhost:8000', 'http://localhost:3000.evil.example'],
  ['localhost:8000', 'http://localhost:3000, http://evil.example'],
  ['localhost', 'ftp://localhost'],
])('[CX-17] at %s the origin %j is refused and nothing runs', async (host, origin) => {
  const runsBefore = server.runRequests.length;
  for (const answer of [
    await server.executeRaw(RUN, { host, origin }),
    await server.ask('/health', { headers: { host, origin } }),
  ]) {
    expect([answer.status, answer.json()]).toEqual([
      403,
      expect.objectContaining({ code: 'ORIGIN_REFUSED' }),
    ]);
    expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
  }
  expect(server.runRequests).toHaveLength(runsBefore);
});

test('[CX-17] cross-site requests without an origin reach only the pages that one may link to', async () => {
  const headers = { 'sec-fetch-site': 'cross-site' };
  const statusOf = async (path: string) => (await server.ask(path, { headers })).status;
  expect(await Promise.all(['/docs', '/'].map(statusOf))).toEqual([200, 302]);
  expect(await Promise.all(['/health', '/metrics', '/openapi.json', '/nowhere'].map(statusOf))).toEqual([
    403, 403, 403, 403,
  ]);
  expect((await server.executeRaw(RUN, headers)).status).toBe(403);
  expect((await server.ask('/docs', { method: 'HEAD', headers })).status).toBe(403);
  expect((await server.executeRaw(RUN, { 'sec-fetch-site': 'same-origin' })).status).toBe(200);
});

test('[CX-17] a preflight of an allowed origin is answered for exactly what is allowed', async () => {
  const answer = await preflight('http://localhost:3000');
  expect([answer.status, answer.text]).toEqual([204, '']);
  expect(answer.headers).toMatchObject({
    'access-control-allow-origin': 'http://localhost:3000',
    'access-control-allow-methods': 'GET, POST, PUT, DELETE',
    'access-control-allow-headers':
      'content-type, authorization, last-event-id, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name',
  });
  expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
});

test.each(['https://evil.example', 'null', 'http://localhost:3001'])(
  '[CX-17] a preflight of %s gets 403 and no allow headers',
  async (origin) => {
    const answer = await preflight(origin);
    expect([answer.status, answer.json()]).toEqual([
      403,
      expect.objectContaining({ code: 'ORIGIN_REFUSED' }),
    ]);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  },
);

test('[CX-17] with no origin allowed, none is', async () => {
  await using strict = await ScriptedServer.start({ corsOrigins: [] });
  expect((await strict.executeRaw(RUN, { origin: 'http://localhost:3000' })).status).toBe(403);
  expect((await strict.executeRaw(RUN)).status).toBe(200);
});

test('a configured origin counts as browsers write it', async () => {
  await using lenient = await ScriptedServer.start({ corsOrigins: ['HTTPS://App.Example:443/'] });
  const answer = await lenient.executeRaw(RUN, { origin: 'https://app.example' });
  expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([
    200,
    'https://app.example',
  ]);
});

function preflight(origin: string) {
  return server.ask('/execute/python', {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type',
    },
  });
}
