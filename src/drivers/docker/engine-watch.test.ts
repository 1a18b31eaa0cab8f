import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EngineWatch } from './engine-watch.ts';
import { ScriptedEngine } from './scripted-engine.double.ts';

const ANSWER_MS = 5000;

let scripted: ScriptedEngine;
let heard: string[];
let watch: EngineWatch;
beforeEach(async () => {
  scripted = await ScriptedEngine.start(() => ({ body: 'OK' }));
  heard = [];
  watch = new EngineWatch(await scripted.connect(), {
    onDown: (problem) => heard.push(`down: ${problem.message}`),
    onUp: () => heard.push('up'),
  });
});
afterEach(async () => {
  watch.close();
  vi.useRealTimers();
  await scripted[Symbol.asyncDispose]();
});

/** A check of an engine that hangs, without the wait for it. */
async function checkHanging(): Promise<void> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const before = scripted.asked.length;
  const checking = watch.check();
  while (scripted.asked.length === before) await new Promise(setImmediate);
  await vi.advanceTimersByTimeAsync(ANSWER_MS);
  await checking;
  vi.useRealTimers();
}

describe('an engine', () => {
  test('[CX-15] that answers is no news', async () => {
    await watch.check();
    await watch.check();
    expect([watch.problem, heard]).toEqual([undefined, []]);
    expect(scripted.asked).toEqual(['GET /_ping', 'GET /_ping']);
  });

  test('[CX-08, CX-15] that is gone is down at once, and once', async () => {
    await scripted.stop();
    await watch.check();
    expect(watch.problem?.message).toContain(`the engine at ${scripted.endpoint.label} cannot answer`);
    await watch.check();
    expect(heard).toEqual([`down: ${watch.problem?.message}`]);
  });

  test('[CX-08, CX-15] that refuses is down at once', async () => {
    scripted.script = () => ({ status: 500, body: { message: 'panic' } });
    await watch.check();
    expect(heard).toEqual(['down: the engine cannot answer: panic']);
  });

  test('[CX-08, CX-15] that hangs is down only after two misses', async () => {
    scripted.script = () => 'hang';
    await checkHanging();
    expect([watch.problem, heard]).toEqual([undefined, []]);
    await checkHanging();
    expect(heard).toEqual([`down: the engine at ${scripted.endpoint.label} cannot answer: no answer in 5 s`]);
    await checkHanging();
    expect(heard).toHaveLength(1);
  });

  test('[CX-15] that missed once is forgiven by its next answer', async () => {
    scripted.script = () => 'hang';
    await checkHanging();
    scripted.script = () => ({ body: 'OK' });
    await watch.check();
    scripted.script = () => 'hang';
    await checkHanging();
    expect([watch.problem, heard]).toEqual([undefined, []]);
  });

  test('[CX-08, CX-15] that is back is up again, and can go down again', async () => {
    await scripted.stop();
    await watch.check();
    await scripted.listen();
    await watch.check();
    expect([watch.problem, heard.length, heard[1]]).toEqual([undefined, 2, 'up']);
    await watch.check();
    expect(heard).toHaveLength(2);
    await scripted.stop();
    await watch.check();
    expect(heard).toHaveLength(3);
  });
});

describe('the watch', () => {
  test('[CX-08] asks by itself, and stops when it is closed', async () => {
    while (scripted.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    watch.close();
    const asked = scripted.asked.length;
    await new Promise((resolve) => setTimeout(resolve, 2500));
    expect(scripted.asked).toHaveLength(asked);
  });

  test('[CX-18] that was closed while it asked is silent', async () => {
    scripted.script = () => 'hang up';
    const checking = watch.check();
    watch.close();
    await checking;
    expect([watch.problem, heard]).toEqual([undefined, []]);
  });
});
