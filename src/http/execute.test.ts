import { expect, test } from 'vitest';
import type { ReachableLimit } from '../core/exec.ts';
import { ExecuteReply } from '../wire/execute.ts';
import { aRunResult, PYTHON, ScriptedServer } from './scripted-server.double.ts';

test('[CX-01] a run answers 200 with every field of the reply', async () => {
  await using server = await ScriptedServer.start();
  server.script = () =>
    Promise.resolve(
      aRunResult({ exitCode: 3, wallTimeMs: 40.123_456, cpuTimeMs: 10.05, peakMemoryBytes: 24_666_112 }),
    );
  const answer = await server.execute({ code: 'x' });
  expect(answer.status).toBe(200);
  expect(answer.json()).toEqual({
    stdout: 'out\n',
    stderr: 'err\n',
    exit_code: 3,
    execution_time_ms: 40.123,
    container_id: 'code-runner-python-a3f9',
    language: 'python',
    image_name: 'python:3.10-slim',
    memory_used_mb: 23.52,
    cpu_percent: 25,
    file_path: '/tmp/exec_1.py',
    receipt: expect.objectContaining({
      outcome: 'exited',
      limit_hit: null,
      wall_time_ms: 40.123,
      cpu_time_ms: 10.05,
      peak_memory_bytes: 24_666_112,
      warm: true,
      stdout_bytes: 4,
      stderr_bytes: 4,
    }),
  });
  expect(ExecuteReply.safeParse(answer.json()).error).toBeUndefined();
});

test('[CX-10] memory that nobody counted is 0 MB and null in the receipt; no time means no CPU share', async () => {
  await using server = await ScriptedServer.start();
  server.script = () =>
    Promise.resolve(aRunResult({ peakMemoryBytes: undefined, wallTimeMs: 0, cpuTimeMs: 0 }));
  expect((await server.execute({ code: '' })).json()).toMatchObject({
    memory_used_mb: 0,
    cpu_percent: 0,
    receipt: { peak_memory_bytes: null },
  });
});

test.each<[ReachableLimit, string]>([
  ['wallTimeMs', 'wall_time'],
  ['memoryBytes', 'memory'],
  ['processes', 'processes'],
  ['outputBytes', 'output'],
])('[CX-04] a program that hits %s is a result: 200 with limit_hit %s', async (limit, wireName) => {
  await using server = await ScriptedServer.start();
  server.script = () =>
    Promise.resolve(aRunResult({ outcome: { kind: 'exited', code: 124 }, limitHit: limit, exitCode: 124 }));
  const answer = await server.execute({ code: '' });
  expect(answer.status).toBe(200);
  expect(answer.json()).toMatchObject({
    exit_code: 124,
    receipt: { outcome: 'exited', limit_hit: wireName },
  });
});

test('every field of the request reaches the run', async () => {
  await using server = await ScriptedServer.start();
  await server.execute({
    code: 'print("ä")',
    stdin: 'in\0put ü',
    args: ['a', ''],
    env: { NAME: 'value', constructor: 'harmless' },
    files: [
      { path: 'a/b.txt', content: 'ö' },
      { path: 'c.bin', content: 'AP8=', encoding: 'base64' },
    ],
    timeout_ms: 250,
    memory_mb: 64,
  });
  expect(server.runRequests).toEqual([
    {
      language: 'python',
      code: 'print("ä")',
      stdin: Buffer.from('in\0put ü'),
      args: ['a', ''],
      env: { NAME: 'value', constructor: 'harmless' },
      files: [
        { path: 'a/b.txt', content: Buffer.from('ö') },
        { path: 'c.bin', content: Buffer.from([0, 255]) },
      ],
      timeoutMs: 250,
      memoryBytes: 64 * 1024 * 1024,
    },
  ]);
});

test('[CX-07] empty code is a run like any other, with no limit of its own', async () => {
  await using server = await ScriptedServer.start();
  expect((await server.execute({ code: '' })).status).toBe(200);
  expect(server.runRequests).toEqual([
    { language: 'python', code: '', stdin: Buffer.alloc(0), args: [], env: {}, files: [] },
  ]);
});

test('[CX-02] the route of a language appears with the language', async () => {
  await using server = await ScriptedServer.start();
  const ask = () => server.ask('/execute/c++', jsonPost('{"code":""}'));
  const before = await ask();
  expect(before.status).toBe(404);
  expect(before.json()).toMatchObject({
    code: 'LANGUAGE_UNKNOWN',
    detail: 'there is no language "c++"',
  });
  server.languages = [PYTHON, { ...PYTHON, name: 'c++' }];
  expect((await ask()).status).toBe(200);
  expect(server.runRequests.map((request) => request.language)).toEqual(['c++']);
});

test('an unknown language is the answer even when the body is bad', async () => {
  await using server = await ScriptedServer.start();
  expect((await server.ask('/execute/cobol', jsonPost('{'))).json()).toMatchObject({
    code: 'LANGUAGE_UNKNOWN',
  });
});

function jsonPost(body: string) {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body };
}
