import { request as sendRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { HotcellError, type ErrorCode } from '../core/errors.ts';
import { aRunResult, ScriptedServer } from './scripted-server.double.ts';

test.each<[ErrorCode, number]>([
  ['DRIVER_UNAVAILABLE', 503],
  ['CELL_START_FAILED', 503],
  ['CELL_LOST', 503],
  ['LANGUAGE_UNAVAILABLE', 503],
  ['SHUTTING_DOWN', 503],
])('[CX-08] our failure %s answers %d with detail, empty output and exit_code -1', async (code, status) => {
  await using server = await ScriptedServer.start();
  server.script = () => Promise.reject(new HotcellError(code, 'crun is not there'));
  const answer = await server.execute({ code: '' });
  expect(answer.status).toBe(status);
  expect(answer.json()).toMatchObject({
    detail: 'crun is not there',
    code,
    stdout: '',
    stderr: '',
    exit_code: -1,
  });
  server.script = () => Promise.resolve(aRunResult());
  expect((await server.execute({ code: '' })).status).toBe(200);
});

test('a busy server says when to come again, and does not call it a failed run', async () => {
  await using server = await ScriptedServer.start();
  server.script = () =>
    Promise.reject(new HotcellError('TOO_BUSY', 'all cells are taken', { retryAfterSeconds: 1.2 }));
  const answer = await server.execute({ code: '' });
  expect([answer.status, answer.headers['retry-after']]).toEqual([429, '2']);
  expect(answer.json()).not.toHaveProperty('exit_code');
});

test('a field that the use case refuses is named', async () => {
  await using server = await ScriptedServer.start();
  server.script = () =>
    Promise.reject(new HotcellError('LIMIT_TOO_HIGH', 'timeout_ms: at most 60000', { field: 'timeout_ms' }));
  const answer = await server.execute({ code: '' });
  expect([answer.status, answer.json()]).toEqual([422, expect.objectContaining({ field: 'timeout_ms' })]);
});

test('[CX-08] an unforeseen error answers 500, says nothing of its inside, and is logged', async () => {
  await using server = await ScriptedServer.start();
  server.script = () => Promise.reject(new TypeError('secret /etc/path'));
  const answer = await server.execute({ code: '' });
  expect(answer.status).toBe(500);
  expect(answer.json()).toMatchObject({ code: 'INTERNAL', exit_code: -1 });
  expect(answer.text).not.toMatch(/secret|TypeError|\.ts/);
  expect(server.logLines).toContainEqual({
    level: 'error',
    message: 'request failed',
    fields: expect.objectContaining({
      error: 'secret /etc/path',
      stack: expect.stringContaining('failures.test'),
    }),
  });
});

test('a client that goes away aborts its run', async () => {
  await using server = await ScriptedServer.start();
  const aborted = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  server.script = async (_request, signal) => {
    signal.addEventListener('abort', () => aborted.resolve());
    started.resolve();
    await aborted.promise;
    throw new HotcellError('CANCELLED', 'nobody waits');
  };
  const outgoing = sendRequest({
    port: server.port,
    host: '127.0.0.1',
    path: '/execute/python',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  });
  outgoing.on('error', () => undefined);
  outgoing.end('{"code":""}');
  await started.promise;
  outgoing.destroy();
  await aborted.promise;
  server.script = () => Promise.resolve(aRunResult());
  expect((await server.execute({ code: '' })).status).toBe(200);
});

test('a run that was answered is not aborted, on a kept connection or a closed one', async () => {
  await using server = await ScriptedServer.start();
  const signals: AbortSignal[] = [];
  server.script = (_request, signal) => {
    signals.push(signal);
    return Promise.resolve(aRunResult());
  };
  for (const connection of ['keep-alive', 'close']) await server.execute({ code: '' }, { connection });
  await sleep(50);
  expect(signals.map((signal) => signal.aborted)).toEqual([false, false]);
});

test('clients that dawdle are cut off', async () => {
  await using server = await ScriptedServer.start();
  const { headersTimeout, requestTimeout } = server.app.server;
  expect({ headersTimeout, requestTimeout }).toEqual({ headersTimeout: 10_000, requestTimeout: 300_000 });
});
