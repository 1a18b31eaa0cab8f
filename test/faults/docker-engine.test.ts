import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { HealthReply } from '../../src/wire/execute.ts';
import { whyNoEngine } from '../support/docker-engine.ts';
import { howOften } from '../support/endurance.ts';
import { FaultyEngine } from '../support/faulty-engine.ts';
import { countMarked, makeMarker } from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import { makeJobs } from '../support/mixed-jobs.ts';
import { testThatNeeds } from '../support/needs.ts';
import { TestServer } from '../support/server.ts';

const test = testThatNeeds(whyNoEngine());
const MIXED_RUNS = howOften(90, 1000);
const AT_ONCE = 4;
const RECOVERS_MS = 90_000;

const stack = new AsyncDisposableStack();
let engine: FaultyEngine;
beforeAll(async () => {
  if (whyNoEngine() === undefined) engine = await FaultyEngine.start(stack);
});
afterAll(() => stack.disposeAsync());

const LESS = '{"ruby": false, "javascript": false, "typescript": false}';

function startServer(...args: readonly string[]): Promise<TestServer> {
  return TestServer.start({
    args: ['--driver', 'docker', '--set', `docker.host=${engine.host}`, '--set', 'pool.size=1', ...args],
  });
}

/** Stops a server and fails if the engine still has anything of it. */
async function stopClean(server: TestServer): Promise<void> {
  const code = await server.stop();
  await server[Symbol.asyncDispose]();
  expect({ code, left: await engine.holdings() }).toEqual({ code: 0, left: [] });
}

async function waitForHealth(server: TestServer, status: HealthReply['status']): Promise<HealthReply> {
  await waitFor(`health is ${status}`, async () => (await server.health()).status === status, RECOVERS_MS);
  return server.health();
}

/** Has the answer every field of what is expected, with its value? */
function holds(reply: object, expected: object): boolean {
  return Object.entries(expected).every(([name, value]) => {
    const found: unknown = Reflect.get(reply, name);
    const isGroup =
      typeof value === 'object' && value !== null && typeof found === 'object' && found !== null;
    return isGroup ? holds(found, value as object) : isDeepStrictEqual(found, value);
  });
}

const hello = (server: TestServer) => server.execute('python', { code: 'print(6 * 7)' });

describe.each(['shared', 'fresh'])('an engine that misbehaves, strategy %s', (strategy) => {
  let server: TestServer;
  beforeAll(async () => {
    if (whyNoEngine() === undefined)
      server = await startServer('--strategy', strategy, '--set', `languages=${LESS}`);
  });
  afterAll(async () => {
    if (whyNoEngine() === undefined) await stopClean(server);
  });

  test('[CX-08, CX-15, SC-02] killed: a clear 503 and degraded, then everything again by itself', async () => {
    expect((await hello(server)).body).toMatchObject({ stdout: '42\n' });
    await engine.crash();
    const { status, body } = await hello(server);
    expect({ status, ...body }).toMatchObject({
      status: 503,
      code: 'DRIVER_UNAVAILABLE',
      stdout: '',
      stderr: '',
      exit_code: -1,
    });
    expect(body.detail).toContain(engine.host);
    expect(body.hint).toContain('Start the engine');
    const degraded = await waitForHealth(server, 'degraded');
    await waitFor(
      'health says why',
      async () => (await server.health()).problem?.includes(engine.host) === true,
    );
    expect(Object.values(degraded.containers)).not.toContain('running');

    await engine.startAgain();
    expect((await waitForHealth(server, 'ok')).problem).toBeNull();
    expect((await hello(server)).body).toMatchObject({ stdout: '42\n', exit_code: 0 });
  });

  test('[CX-08, CX-15] hanging: no request hangs with it, and no run is taken for one that timed out', async () => {
    engine.hang();
    const [first, second] = await Promise.all([
      server.execute('python', { code: 'print(6 * 7)', timeout_ms: 1000 }),
      server.execute('bash', { code: 'echo 42', timeout_ms: 1000 }),
    ]);
    for (const { status, body } of [first, second]) {
      expect({ status, code: body.code, exit_code: body.exit_code }).toEqual({
        status: 503,
        code: 'DRIVER_UNAVAILABLE',
        exit_code: -1,
      });
    }
    await waitFor('health says why', async () => (await server.health()).problem !== null, RECOVERS_MS);
    // Known by now: nobody has to wait to be told.
    expect((await hello(server)).body.code).toBe('DRIVER_UNAVAILABLE');
    engine.goOn();
    await waitForHealth(server, 'ok');
    expect((await hello(server)).body).toMatchObject({ stdout: '42\n', exit_code: 0 });
  });

  test('[CX-08, SC-02] a full disk: said in so many words, and served again when there is room', async () => {
    const free = await engine.fillDisk();
    // What is ready can still be used; what has to be made cannot.
    const codes = new Set<string>();
    try {
      await waitFor('a request is refused', async () => {
        const { status, body } = await server.execute('python', { code: 'print(6 * 7)', memory_mb: 100 });
        if (status === 200) return body.stdout !== '42\n';
        codes.add(`${status} ${body.code} ${/no space left|disk is full/i.test(body.detail)}`);
        return true;
      });
    } finally {
      free();
    }
    expect([...codes]).toEqual(['503 DRIVER_UNAVAILABLE true']);
    await waitForHealth(server, 'ok');
    expect((await hello(server)).body).toMatchObject({ stdout: '42\n', exit_code: 0 });
  });
});

test(`[SC-02, CX-08] ${MIXED_RUNS} mixed runs, the engine killed twice: right or a clear 5xx, and nothing is left`, async () => {
  const server = await startServer('--strategy', 'shared', '--set', 'pool.size=2');
  const marker = makeMarker();
  const toJob = makeJobs(marker);
  const crashes = new Set([MIXED_RUNS / 3, (2 * MIXED_RUNS) / 3].map(Math.floor));
  let next = 0;
  let right = 0;
  const refusals: string[] = [];
  const wrong: unknown[] = [];
  const crash = async (): Promise<void> => {
    await engine.crash();
    await engine.startAgain();
  };
  const worker = async (): Promise<void> => {
    while (next < MIXED_RUNS) {
      const number = next++;
      const crashing = crashes.has(number) ? crash() : Promise.resolve();
      const { language, body, expected } = toJob(number);
      const { status, body: reply } = await server.execute(language, body);
      if (status === 200) {
        if (holds(reply, expected)) right++;
        else wrong.push({ number, language, body, expected, reply });
      } else {
        refusals.push(`${status} ${reply.code}`);
        // A caller that heeds the answer waits until it makes sense to ask again.
        await waitForHealth(server, 'ok');
      }
      await crashing;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  expect(wrong).toEqual([]);
  const clear = /^503 (DRIVER_UNAVAILABLE|CELL_LOST|CELL_START_FAILED)$/;
  expect(refusals.filter((refusal) => !clear.test(refusal))).toEqual([]);
  expect(right).toBe(MIXED_RUNS - refusals.length);
  // Two outages of a few seconds cannot have cost more than what was under way.
  expect(refusals.length).toBeLessThanOrEqual(2 * 2 * AT_ONCE);
  expect(countMarked(marker)).toBe(0);
  await stopClean(server);
}, 600_000);
