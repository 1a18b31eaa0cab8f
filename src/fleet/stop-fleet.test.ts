import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PreparedFleet } from '../../test/support/prepared-fleet.ts';
import { findOrchestrator, takeOrchestrator } from './state/orchestrator-lock.ts';
import type { StateStore } from './state/state-store.ts';
import { stopFleet, stopWorker, type StopResult } from './stop-fleet.ts';

let repository: PreparedFleet;
let store: StateStore;
beforeEach(() => {
  repository = new PreparedFleet();
  store = repository.state({
    tasks: {
      A: { status: 'in_progress', worker_id: 0 },
      B: { status: 'complete' },
      C: { status: 'pending' },
    },
    workers: {
      0: { worker_id: 0, status: 'running', current_task: 'A' },
      1: { worker_id: 1, status: 'crashed', stop_requested: true },
    },
  });
});
afterEach(() => repository[Symbol.asyncDispose]());

function stop(wish: { force?: boolean; timeoutMs?: number } = {}): Promise<StopResult> {
  return stopFleet(
    { paths: repository.paths(), store, reclaim: () => Promise.resolve(['mahabharatha-worker-0']) },
    { force: false, timeoutMs: 10_000, signal: new AbortController().signal, onProgress: () => {}, ...wish },
  );
}

const SETTLED = {
  tasks: { A: { status: 'pending', worker_id: null }, B: { status: 'complete' }, C: { status: 'pending' } },
  workers: {
    0: { status: 'stopped', current_task: null },
    1: { status: 'crashed', stop_requested: false },
  },
};

test('[FL-15] the orchestrator is asked to end, by the pid of its record', async () => {
  const child = await repository.hold();
  const { pid } = child;
  expect(await stop()).toEqual({ pid, requeued: ['A'], removedCells: ['mahabharatha-worker-0'] });
  expect(child.signalCode).toBeNull();
  expect(store.read()).toMatchObject(SETTLED);
  expect(findOrchestrator(repository.paths())).toBeUndefined();
});

test('[FL-15] with force it is killed at once, and its tasks can be taken again', async () => {
  const { pid } = await repository.hold('deaf');
  expect(await stop({ force: true })).toMatchObject({ pid, requeued: ['A'] });
  expect(store.read()).toMatchObject(SETTLED);
});

test('[FL-15] one that does not end in time is named, and nothing is touched', async () => {
  const { pid } = await repository.hold('deaf');
  await expect(stop({ timeoutMs: 300 })).rejects.toMatchObject({
    code: 'FLEET_BUSY',
    message: `process ${pid} has not ended within 0.3 s`,
    hint: expect.stringContaining('--force') as unknown,
  });
  expect(store.read()?.tasks['A']?.status).toBe('in_progress');
});

test('[FL-11, FL-15] after one that was killed, everything is tidied up', async () => {
  const child = await repository.hold();
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await stop()).toEqual({ pid: undefined, requeued: ['A'], removedCells: ['mahabharatha-worker-0'] });
  expect(store.read()).toMatchObject(SETTLED);
  const events = store.read()?.execution_log.map(({ event }) => event);
  expect(events).toEqual(['task_requeued', 'fleet_stopped']);
  await stop();
  expect(store.read()?.execution_log).toHaveLength(2);
});

test('[FL-15] a feature that was never begun is unknown', async () => {
  const paths = repository.paths('blog');
  const nothing = new (store.constructor as typeof StateStore)(paths);
  const wish = { force: false, timeoutMs: 1, signal: new AbortController().signal, onProgress: () => {} };
  await expect(
    stopFleet({ paths, store: nothing, reclaim: () => Promise.resolve([]) }, wish),
  ).rejects.toMatchObject({
    code: 'FLEET_UNKNOWN',
  });
});

test('[FL-15] one worker: a living orchestrator finds the wish in the state', async () => {
  const parts = { paths: repository.paths(), store };
  const wish = { timeoutMs: 5000, signal: new AbortController().signal };
  await expect(stopWorker(parts, 0, wish)).rejects.toMatchObject({
    code: 'FLEET_UNKNOWN',
    message: expect.stringContaining('no orchestrator') as unknown,
  });
  expect(store.read()?.workers['0']?.stop_requested).toBeUndefined();

  using hold = takeOrchestrator(repository.paths());
  await expect(stopWorker(parts, 9, wish)).rejects.toMatchObject({ hint: 'Its workers: 0, 1.' });
  expect(await stopWorker(parts, 0, { ...wish, timeoutMs: 150 })).toBe(false);
  expect(store.read()?.workers['0']).toMatchObject({ stop_requested: true, status: 'running' });
  const stopping = stopWorker(parts, 0, wish);
  store.update((state) => Object.assign(state.workers['0'] ?? {}, { status: 'stopped' }));
  expect(await stopping).toBe(true);
  expect(hold.record.pid).toBe(process.pid);
});
