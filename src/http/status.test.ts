import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { HealthReply, LanguagesReply } from '../wire/execute.ts';
import { MetricsReply } from '../wire/metrics.ts';
import { METRICS_VIEW_EXAMPLE } from './openapi-examples.ts';
import { aRunResult, HEALTH, PYTHON, ScriptedServer } from './scripted-server.double.ts';

test('[CX-15] health tells status, containers and uptime, with 200 also when degraded', async () => {
  await using server = await ScriptedServer.start();
  const answer = await server.ask('/health');
  expect([answer.status, answer.json()]).toEqual([200, HEALTH]);
  expect(HealthReply.safeParse(answer.json()).error).toBeUndefined();
});

test('[CX-02] languages tells what can be run and why something cannot', async () => {
  await using server = await ScriptedServer.start();
  server.languages = [
    PYTHON,
    { ...PYTHON, name: 'ruby', available: false, problem: 'ruby is not installed' },
  ];
  const body = (await server.ask('/languages')).json();
  expect(body).toEqual({
    languages: [
      {
        name: 'python',
        extension: 'py',
        image_name: 'python:3.10-slim',
        route: '/execute/python',
        available: true,
        problem: null,
      },
      expect.objectContaining({ name: 'ruby', available: false, problem: 'ruby is not installed' }),
    ],
  });
  expect(LanguagesReply.safeParse(body).error).toBeUndefined();
});

test('metrics are text for Prometheus; when they fail the answer is an error like any other', async () => {
  await using server = await ScriptedServer.start();
  const answer = await server.ask('/metrics');
  expect([answer.status, answer.headers['content-type'], answer.text]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
    'hotcell_runs_total 1\n',
  ]);
  server.metrics = () => Promise.reject(new Error('inner words'));
  const failed = await server.ask('/metrics');
  expect([failed.status, failed.json()]).toEqual([
    500,
    { detail: 'something unforeseen went wrong inside Hotcell', code: 'INTERNAL', hint: expect.any(String) },
  ]);
});

test('[RS-18] metrics come as JSON to whoever asks for it', async () => {
  await using server = await ScriptedServer.start();
  const asked = await server.ask('/metrics', { headers: { accept: 'application/json' } });
  const byName = await server.ask('/metrics.json');
  for (const answer of [asked, byName]) {
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect(MetricsReply.parse(answer.json())).toEqual(METRICS_VIEW_EXAMPLE);
  }
});

test('liveness needs nothing, readiness a driver that works', async () => {
  await using server = await ScriptedServer.start({ apiKey: 'key-12345' });
  expect([(await server.ask('/livez')).status, (await server.ask('/readyz')).status]).toEqual([200, 200]);
  server.health = { ...HEALTH, problem: 'the engine does not answer' };
  const answer = await server.ask('/readyz');
  expect([answer.status, answer.json()]).toMatchObject([
    503,
    { code: 'DRIVER_UNAVAILABLE', detail: 'the engine does not answer' },
  ]);
  expect((await server.ask('/livez')).status).toBe(200);
});

test.each([
  ['PUT', '/health', 'GET, HEAD'],
  ['POST', '/languages', 'GET, HEAD'],
  ['DELETE', '/docs', 'GET, HEAD'],
  ['PATCH', '/', 'GET, HEAD'],
  ['GET', '/execute/python', 'POST'],
  ['HEAD', '/execute/python', 'POST'],
  ['OPTIONS', '/execute/python', 'POST'],
  ['QUERY', '/execute/python', 'POST'],
  ['PROPFIND', '/openapi.json', 'GET, HEAD'],
  ['PATCH', '/v1/sessions', 'GET, HEAD, POST'],
  ['PUT', '/v1/sessions/session_1', 'DELETE, GET, HEAD'],
  ['POST', '/v1/sessions/session_1/egress', 'GET, HEAD, PUT'],
  ['HEAD', '/v1/sessions/session_1/execs/exec_1/output', 'GET'],
  ['POST', '/v1/sessions/session_1/terminal', 'GET'],
])('%s %s is 405 and allow says %s', async (method, path, allow) => {
  await using server = await ScriptedServer.start();
  const answer = await server.ask(`${path}?query`, { method });
  expect([answer.status, answer.headers.allow?.split(', ').toSorted().join(', ')]).toEqual([405, allow]);
  expect(answer.text).toMatch(method === 'HEAD' ? /^$/ : /"METHOD_NOT_ALLOWED"/);
});

test.each([
  ['GET', '/nowhere'],
  ['POST', '/nowhere'],
  ['OPTIONS', '/nowhere'],
  ['GET', '/health/'],
  ['GET', '/openapiXjson'],
  ['POST', '/execute/python/more'],
  ['GET', '/v1'],
  ['GET', '/v1/sessions/session_1/nothing'],
  ['POST', '/v1/sessions/session_1/execs/exec_1/nothing'],
])('%s %s is 404', async (method, path) => {
  await using server = await ScriptedServer.start();
  const answer = await server.ask(path, { method, headers: { 'content-type': 'application/json' } });
  expect([answer.status, answer.json()]).toEqual([404, expect.objectContaining({ code: 'NOT_FOUND' })]);
});

test('every reply forbids sniffing and caching', async () => {
  await using server = await ScriptedServer.start();
  for (const answer of [
    await server.execute({ code: '' }),
    await server.execute({}),
    await server.ask('/health'),
    await server.ask('/docs'),
    await server.ask('/nowhere'),
    await server.ask('/health', { headers: { host: 'evil.example' } }),
  ]) {
    expect(answer.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
  }
});

test('[CX-19] a request is one debug line without query, headers, body or path', async () => {
  await using server = await ScriptedServer.start();
  await server.ask('/execute/python?query=secret1', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer secret2' },
    body: '{"code":"secret3","env":{"A":"secret4"}}',
  });
  await server.ask('/secret5');
  await expect.poll(() => server.logLines).toHaveLength(2);
  expect(server.logLines).toEqual([
    {
      level: 'debug',
      message: 'request served',
      fields: { method: 'POST', route: '/execute/:language', status: 200, ms: expect.any(Number) },
    },
    {
      level: 'debug',
      message: 'request served',
      fields: { method: 'GET', route: 'unknown', status: 404, ms: expect.any(Number) },
    },
  ]);
});

test('[CX-18] a server that stops ends what runs, begins nothing new, and closes', async () => {
  const server = await ScriptedServer.start();
  const { port } = server;
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  server.script = async () => {
    started.resolve();
    await ended.promise;
    return aRunResult();
  };
  const request = [
    'POST /execute/python HTTP/1.1',
    'Host: localhost',
    'Content-Type: application/json',
    'Content-Length: 11',
    '',
    '{"code":""}',
  ].join('\r\n');
  const received = Promise.withResolvers<string>();
  let text = '';
  const socket = connect(port, '127.0.0.1', () => socket.write(request));
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.on('close', () => received.resolve(text));
  await started.promise;
  const closed = server.app.close();
  await expect.poll(() => server.app.server.listening).toBe(false);
  socket.write(request);
  await sleep(50);
  ended.resolve();
  await closed;
  // Whatever else comes on that connection is not begun: the answer closes it.
  const answers = (await received.promise).split(/(?=HTTP\/1\.1 )/);
  expect(answers).toEqual([expect.stringMatching(/^HTTP\/1\.1 200 OK\r\n[^]*connection: close\r\n/i)]);
});
