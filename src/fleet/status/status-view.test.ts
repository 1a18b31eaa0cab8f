import { describe, expect, test } from 'vitest';
import { FOREIGN_STATE } from '../../../test/support/foreign-fleet-state.ts';
import { FleetState } from '../fleet-state.ts';
import type { OrchestratorRecord } from '../state/orchestrator-lock.ts';
import { TaskGraph } from '../task-graph.ts';
import { toFinalReport } from './final-report.ts';
import { toStatusJson } from './status-json.ts';
import { toStatusView } from './status-view.ts';

const NOW = new Date('2026-01-01T01:00:00.000Z');
const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
const LIVING: OrchestratorRecord = { pid: 4711, started_at: at(0) };
const MINUTE = 60_000;

const GRAPH = TaskGraph.parse({
  feature: 'shop',
  levels: { 1: { name: 'ground' } },
  tasks: [
    { id: 'A', title: 'First', level: 1, estimate_minutes: 10 },
    { id: 'B', title: 'Second', level: 1, estimate_minutes: 10 },
    { id: 'C', title: 'Third', level: 2, estimate_minutes: 20 },
    { id: 'D', title: 'Fourth', level: 2, estimate_minutes: 20 },
  ],
});

function stateWith(change: object): FleetState {
  return FleetState.parse({
    feature: 'shop',
    started_at: at(30),
    current_level: 1,
    tasks: {
      A: {
        status: 'complete',
        worker_id: 0,
        duration_ms: 5 * MINUTE,
        commit: 'c0ffee',
        changed_files: ['a.ts', 'b.ts'],
        foreign_files: ['b.ts'],
      },
      B: { status: 'in_progress', worker_id: 1, started_at: at(58), retry_count: 1 },
    },
    workers: {
      1: {
        worker_id: 1,
        status: 'running',
        current_task: 'B',
        restarts: 2,
        container_name: 'mahabharatha-worker-1',
      },
      0: { worker_id: 0, status: 'idle', tasks_completed: 1 },
    },
    levels: { 1: { status: 'running' } },
    ...change,
  });
}

const view = (change: object = {}, orchestrator: OrchestratorRecord | undefined = LIVING) =>
  toStatusView({ state: stateWith(change), graph: GRAPH, orchestrator, now: NOW });

describe('a run', () => {
  test('[FL-06] counts tasks, per level too, also those that only the graph knows', () => {
    expect(view()).toMatchObject({
      runState: 'running',
      progress: { total: 4, complete: 1, running: 1, waiting: 2, failed: 0, blocked: 0 },
      elapsedMs: 30 * MINUTE,
      levels: [
        { level: 1, name: 'ground', status: 'running', total: 2, complete: 1, running: 1 },
        { level: 2, status: 'pending', total: 2, waiting: 2 },
      ],
    });
    expect(view().tasks.map(({ id, title, status }) => [id, title, status])).toEqual([
      ['A', 'First', 'complete'],
      ['B', 'Second', 'in_progress'],
      ['C', 'Third', 'pending'],
      ['D', 'Fourth', 'pending'],
    ]);
  });

  test('[FL-06] shows workers by number, with task, time and lost cells', () => {
    expect(view().workers).toMatchObject([
      { worker: 0, status: 'idle', completed: 1, task: undefined },
      {
        worker: 1,
        status: 'running',
        task: 'B',
        busyMs: 2 * MINUTE,
        restarts: 2,
        cell: 'mahabharatha-worker-1',
      },
    ]);
  });

  test('[FL-06] estimates the rest from what was estimated and what it really took', () => {
    // A took half of its estimate. B: 5 - 2 minutes; then C and D at once, 10 minutes each.
    expect(view().remainingMs).toBe(13 * MINUTE);
    // With one pair of hands they come one after the other.
    expect(view({ workers: { 0: { worker_id: 0, status: 'running' } } }).remainingMs).toBe(23 * MINUTE);
  });

  test('[FL-06] without any estimate the average of what is done counts, and nothing is made up', () => {
    const known = { state: stateWith({}), graph: undefined, orchestrator: LIVING, now: NOW };
    expect(toStatusView(known).remainingMs).toBe(3 * MINUTE);
    const tasks = { B: { status: 'pending' } };
    expect(toStatusView({ ...known, state: stateWith({ tasks }) }).remainingMs).toBeUndefined();
  });
});

describe('without an orchestrator', () => {
  test('[FL-06] nothing is said to run, whatever the state claims, and how to go on', () => {
    const dead = toStatusView({ state: stateWith({}), graph: GRAPH, orchestrator: undefined, now: NOW });
    expect(dead.runState).toBe('stopped');
    expect(dead.remainingMs).toBeUndefined();
    expect(dead.workers.map(({ status, task }) => [status, task])).toEqual([
      ['gone', undefined],
      ['gone', undefined],
    ]);
    expect(dead.attention).toEqual([
      {
        kind: 'stopped',
        text: 'no orchestrator is running',
        instructions: ['hotcell fleet resume --feature shop'],
      },
    ]);
  });

  test.each([
    ['complete', { tasks: { A: { status: 'complete' } }, levels: { 1: { status: 'complete' } } }],
    ['stopped', { tasks: { A: { status: 'complete' } }, levels: { 1: { status: 'merging' } } }],
    ['paused', { paused: true }],
    ['failed', { tasks: { A: { status: 'failed' } } }],
    ['failed', { error: 'the disk is full' }],
  ])('[FL-06] it is %s with %j', (runState, change) => {
    const seen = { state: stateWith(change), graph: undefined, orchestrator: undefined, now: NOW };
    expect(toStatusView(seen).runState).toBe(runState);
  });
});

test('[FL-05, FL-06] what waits for a person is said, with what to do', () => {
  const { attention } = view({
    error: 'stopped at level 1',
    tasks: {
      A: { status: 'failed', error: `the tests\n\tfailed ${'x'.repeat(500)}`, exit_code: 1 },
      B: { status: 'blocked', error: 'no database', exit_code: 3 },
      C: { status: 'blocked', error: 'which one?', exit_code: 4 },
      D: { status: 'waiting_retry', next_retry_at: at(61), retry_count: 1 },
    },
    workers: { 0: { worker_id: 0, status: 'crashed', error: 'no heartbeat' } },
    levels: {
      1: {
        status: 'conflict',
        merge_details: {
          branch: 'mahabharatha/shop/worker-1',
          files: ['a.ts'],
          instructions: ['git merge …'],
        },
      },
      2: { status: 'failed', merge_details: { gate: 'lint' } },
    },
  });
  expect(attention.map(({ kind }) => kind)).toEqual([
    'error',
    'conflict',
    'gate',
    'failed',
    'blocked',
    'escalated',
    'worker',
  ]);
  const [, conflict, gate, failed, , escalated] = attention;
  expect(conflict).toMatchObject({
    text: 'level 1: mahabharatha/shop/worker-1 does not merge: a.ts',
    instructions: ['git merge …'],
  });
  expect(gate?.text).toBe('level 2: the check lint did not pass');
  // How it failed, and the last words.
  expect(failed?.text).toMatch(/^A failed: the tests failed x+ \[…\] x+$/);
  expect(failed?.instructions).toContain('hotcell fleet retry A --feature shop');
  expect(escalated?.text).toBe('C asks for a decision: which one?');
});

test('[FL-06] tasks tell attempts, time and when they are tried again', () => {
  const { tasks } = view({
    tasks: {
      A: { status: 'complete', retry_count: 2, duration_ms: 1000 },
      B: { status: 'waiting_retry', retry_count: 1, next_retry_at: at(62) },
      C: { status: 'failed', retry_count: 4 },
    },
  });
  expect(tasks.map(({ attempts, retryInMs }) => [attempts, retryInMs])).toEqual([
    [3, undefined],
    [1, 2 * MINUTE],
    [4, undefined],
    [0, undefined],
  ]);
});

test('[FL-06] a state that another program wrote is shown, and its JSON begins with the keys of the state', () => {
  const state = FleetState.parse(FOREIGN_STATE);
  const shown = toStatusView({ state, graph: undefined, orchestrator: undefined, now: NOW });
  expect(shown.progress).toMatchObject({ total: 3, complete: 1, waiting: 2 });
  const json = toStatusJson(state, shown);
  expect(Object.keys(json).slice(0, 9)).toEqual([
    'feature',
    'current_level',
    'paused',
    'error',
    'tasks',
    'workers',
    'levels',
    'events',
    'metrics',
  ]);
  expect(json).toMatchObject({ feature: 'shop', events: FOREIGN_STATE.execution_log, orchestrator: null });
});

test('[FL-06] events of the JSON are the last ten', () => {
  const execution_log = Array.from({ length: 30 }, (_, turn) => ({ timestamp: at(0), event: `e${turn}` }));
  const state = stateWith({ execution_log });
  const { events } = toStatusJson(state, view()) as { events: { event: string }[] };
  expect(events.map(({ event }) => event)).toEqual(Array.from({ length: 10 }, (_, turn) => `e${20 + turn}`));
});

test('[FL-06] no time passes for what nobody is at', () => {
  const change = { led_ms: 5 * MINUTE, led_since: at(55), led_until: at(59) };
  const stopped = toStatusView({ state: stateWith(change), graph: GRAPH, orchestrator: undefined, now: NOW });
  expect(stopped.elapsedMs).toBe(9 * MINUTE);
  expect(stopped.tasks.find(({ id }) => id === 'B')?.durationMs).toBe(MINUTE);
  const { totals } = toFinalReport(stateWith(change), GRAPH, NOW);
  expect(totals).toMatchObject({ workMs: 6 * MINUTE, elapsedMs: 9 * MINUTE });
});

test('[FL-06] the final report tells what each task did, took and changed', () => {
  const report = toFinalReport(stateWith({ finished_at: at(59) }), GRAPH, NOW);
  expect(report.tasks[0]).toMatchObject({
    id: 'A',
    durationMs: 5 * MINUTE,
    changedFiles: 2,
    foreignFiles: ['b.ts'],
    attempts: 1,
    worker: 0,
    commit: 'c0ffee',
  });
  expect(report.totals).toEqual({
    attempts: 3,
    workMs: 5 * MINUTE + 2 * MINUTE,
    elapsedMs: 29 * MINUTE,
    changedFiles: 2,
    commits: 1,
    restarts: 2,
  });
});
