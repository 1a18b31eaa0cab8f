import { chmodSync } from 'node:fs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { HotcellError } from '../../core/errors.ts';
import { findEndpoint, type Endpoint } from './endpoint.ts';
import { Engine, EngineRefusal, isRefusal } from './engine.ts';
import { ScriptedEngine } from './scripted-engine.double.ts';

const NOWHERE = findEndpoint({ DOCKER_HOST: 'unix:///nonexistent/docker.sock' });
const NOBODY = findEndpoint({ DOCKER_HOST: 'tcp://127.0.0.1:1' });

async function failureOf(call: Promise<unknown>): Promise<HotcellError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof HotcellError)) throw new Error(`no error of ours: ${String(error)}`);
  return error;
}

async function refusalOf(call: Promise<unknown>): Promise<EngineRefusal> {
  const error = await call.catch((thrown: unknown) => thrown);
  if (!(error instanceof EngineRefusal)) throw new Error(`no refusal: ${String(error)}`);
  return error;
}

afterEach(() => void vi.useRealTimers());

describe('an engine that answers', () => {
  test('gives what it says', async () => {
    await using scripted = await ScriptedEngine.start(() => ({ body: { Version: '1' } }));
    const engine = await scripted.connect();
    expect(await engine.call('tell its version', (docker) => docker.version())).toEqual({ Version: '1' });
    expect(scripted.asked).toEqual(['GET /version']);
  });

  test.each([404, 409, 500])('with %i refuses, in its own words', async (status) => {
    await using scripted = await ScriptedEngine.start(() => ({
      status,
      body: { message: 'no such thing: x\n' },
    }));
    const engine = await scripted.connect();
    const refusal = await refusalOf(
      engine.call('remove a container', (docker) => docker.getContainer('x').remove()),
    );
    expect(refusal).toMatchObject({
      status,
      words: 'no such thing: x',
      message: 'the engine cannot remove a container: no such thing: x',
    });
    expect([isRefusal(refusal, 404, 409), isRefusal(refusal, 500)]).toEqual([status !== 500, status === 500]);
  });

  test('with words that are no JSON refuses, too', async () => {
    await using scripted = await ScriptedEngine.start(() => ({
      status: 502,
      body: '<html>bad gateway</html>',
    }));
    const refusal = await refusalOf((await scripted.connect()).call('answer', (docker) => docker.ping()));
    expect(refusal.status).toBe(502);
    expect(refusal.words).toContain('bad gateway');
  });

  test('with very long words has them cut', async () => {
    await using scripted = await ScriptedEngine.start(() => ({
      status: 400,
      body: { message: 'x'.repeat(5000) },
    }));
    const { words, message } = await refusalOf(
      (await scripted.connect()).call('answer', (docker) => docker.ping()),
    );
    expect(words).toBe(`${'x'.repeat(600)} …`);
    expect(message).toBe(`the engine cannot answer: ${words}`);
  });

  test('and with what is no refusal is not taken for one', () => {
    expect(isRefusal(new Error('x'), 404)).toBe(false);
    expect(isRefusal(undefined, 404)).toBe(false);
  });
});

describe('an engine that does not answer', () => {
  test('[CX-08] costs no more than the deadline', async () => {
    await using scripted = await ScriptedEngine.start(() => 'hang');
    const engine = await scripted.connect();
    const failure = await failureOf(engine.call('tell its version', (docker) => docker.version(), 50));
    expect(failure).toMatchObject({
      code: 'DRIVER_UNAVAILABLE',
      message: `the engine at ${scripted.endpoint.label} cannot tell its version: no answer in 0.05 s`,
    });
    expect(failure.cause).toBeUndefined();
  });

  test('[CX-08] has half a minute unless somebody says otherwise', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    await using scripted = await ScriptedEngine.start(() => 'hang');
    const engine = await scripted.connect();
    let isOver = false;
    const failing = failureOf(engine.call('answer', () => new Promise(() => {}))).finally(
      () => (isOver = true),
    );
    await vi.advanceTimersByTimeAsync(29_999);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect((await failing).message).toContain('no answer in 30 s');
  });

  test('[CX-08] is told that nobody waits any more', async () => {
    await using scripted = await ScriptedEngine.start(() => 'hang');
    const engine = await scripted.connect();
    let signal: AbortSignal | undefined;
    await failureOf(
      engine.call(
        'answer',
        (_docker, { abortSignal }) => {
          signal = abortSignal;
          return new Promise(() => {});
        },
        20,
      ),
    );
    expect(signal?.aborted).toBe(true);
  });

  test('[CX-08] leaves no timer behind when it does', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const engine = await Engine.connect(NOWHERE);
    await engine.call('answer', () => Promise.resolve(1));
    await failureOf(engine.call('answer', (docker) => docker.ping()));
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('an engine that is not there', () => {
  test.each<[string, Endpoint, string]>([
    ['no socket', NOWHERE, 'ENOENT'],
    ['nobody at the port', { ...NOBODY, local: true }, 'ECONNREFUSED'],
  ])('[CX-08, WB-02] %s: says where, what for, and how to start it', async (_what, endpoint, errno) => {
    const engine = await Engine.connect(endpoint);
    const failure = await failureOf(engine.call('create a container', (docker) => docker.ping()));
    expect(failure.code).toBe('DRIVER_UNAVAILABLE');
    expect(failure.message).toContain(`the engine at ${endpoint.label} cannot create a container`);
    expect(failure.message).toContain(errno);
    expect(failure.hint).toContain('systemctl start docker');
    expect(failure.cause).toBeInstanceOf(Error);
  });

  test('[WB-02] on another machine, names the setting instead', async () => {
    const engine = await Engine.connect({ ...NOBODY, local: false });
    const { hint } = await failureOf(engine.call('answer', (docker) => docker.ping()));
    expect(hint).toBe('Check DOCKER_HOST: an engine must listen there.');
  });

  test('[CX-08] any more, in the middle of a call', async () => {
    await using scripted = await ScriptedEngine.start(() => 'hang up');
    const failure = await failureOf((await scripted.connect()).call('answer', (docker) => docker.ping()));
    expect(failure).toMatchObject({
      code: 'DRIVER_UNAVAILABLE',
      message: expect.stringContaining('hang up') as string,
    });
  });

  test('[WB-02] for this user: says how to be let in', async () => {
    await using scripted = await ScriptedEngine.start(() => ({}));
    const socket = scripted.endpoint.connection.socketPath ?? '';
    chmodSync(socket, 0);
    const engine = await scripted.connect();
    // Root may open any socket; then the error of everybody else is played.
    const refuse = () =>
      Promise.reject(Object.assign(new Error(`connect EACCES ${socket}`), { code: 'EACCES' }));
    const isRoot = process.geteuid?.() === 0;
    const failure = await failureOf(engine.call('answer', (docker) => (isRoot ? refuse() : docker.ping())));
    expect(failure.code).toBe('DRIVER_UNAVAILABLE');
    expect(failure.hint).toContain('usermod -aG docker');
  });
});

describe('errors of ours', () => {
  test('pass as they are', async () => {
    const engine = await Engine.connect(NOWHERE);
    const own = new HotcellError('SHUTTING_DOWN', 'over');
    await expect(engine.call('answer', () => Promise.reject(own))).rejects.toBe(own);
    const refusal = new EngineRefusal('answer', 404, 'no');
    await expect(engine.call('answer', () => Promise.reject(refusal))).rejects.toBe(refusal);
  });

  test('that nobody knows are refusals, with their words', async () => {
    const engine = await Engine.connect(NOWHERE);
    const refusal = await refusalOf(engine.call('answer', () => Promise.reject(new Error('unexpected'))));
    expect([refusal.status, refusal.words]).toEqual([500, 'unexpected']);
  });
});
