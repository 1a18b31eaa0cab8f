import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FleetState } from './fleet-state.ts';
import { fleetPaths } from './names.ts';
import { retryTasks } from './retry-tasks.ts';
import { StateStore } from './state/state-store.ts';

let root = '';
let store: StateStore;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-retry-'));
  store = new StateStore(fleetPaths(root, 'shop'));
  store.create(
    FleetState.parse({
      feature: 'shop',
      started_at: 'now',
      paused: true,
      error: 'stuck',
      finished_at: 'now',
      tasks: {
        A: { status: 'complete', commit: 'c0ffee' },
        B: { status: 'failed', retry_count: 4, error: 'odd', exit_code: 1, worker_id: 2, losses: 3 },
        C: { status: 'blocked', retry_count: 1, error: 'no database', exit_code: 3 },
        D: { status: 'waiting_retry', retry_count: 2, next_retry_at: '2099-01-01T00:00:00Z' },
        E: { status: 'pending' },
        F: { status: 'paused', worker_id: 1 },
      },
    }),
  );
});
afterEach(() => rmSync(root, { recursive: true }));

const retry = (task?: string, reset = false): string[] => retryTasks(store, { task, reset });
const tasks = (): FleetState['tasks'] => store.read()?.tasks ?? {};

test('[FL-15] a task that failed for good gets exactly one more attempt', () => {
  expect(retry('B')).toEqual(['B']);
  expect(tasks()['B']).toMatchObject({
    status: 'pending',
    retry_count: 3,
    error: null,
    exit_code: null,
    next_retry_at: null,
    worker_id: null,
    losses: 3,
  });
  expect(store.read()).toMatchObject({ paused: false, error: null, finished_at: null });
  expect(store.read()?.execution_log.at(-1)).toMatchObject({
    event: 'task_retry_requested',
    data: { task_id: 'B' },
  });
});

test('[FL-15] with reset it has as many as a new one', () => {
  retry('B', true);
  expect(tasks()['B']).toMatchObject({ retry_count: 0, losses: 0 });
});

test('[FL-15] one that waits is taken at once, one that was put aside too', () => {
  retry('D');
  retry('F');
  expect(tasks()['D']).toMatchObject({ status: 'pending', retry_count: 2, next_retry_at: null });
  expect(tasks()['F']).toMatchObject({ status: 'pending', worker_id: null });
});

test('[FL-15] all that failed or are blocked, and no other', () => {
  expect(retry()).toEqual(['B', 'C']);
  expect(Object.values(tasks()).map(({ status }) => status)).toEqual([
    'complete',
    'pending',
    'pending',
    'waiting_retry',
    'pending',
    'paused',
  ]);
  // Nothing left: then nothing is touched.
  store.update((state) => (state.paused = true));
  expect(retry()).toEqual([]);
  expect(store.read()?.paused).toBe(true);
});

test.each([
  ['A', 'INVALID_REQUEST', 'A is complete'],
  ['E', 'INVALID_REQUEST', 'E is pending'],
  ['X', 'FLEET_UNKNOWN', 'no task "X"; did you mean B?'],
  ['__proto__', 'FLEET_UNKNOWN', 'no task "__proto__"'],
])('[FL-15] %s cannot be retried: %s', (task, code, words) => {
  const suggest = (_name: string, known: readonly string[]): string => `; did you mean ${known[1]}?`;
  expect(() => retryTasks(store, { task, reset: false, suggest })).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(words) as unknown }),
  );
  expect(store.read()?.paused).toBe(true);
});
