import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FleetState } from '../fleet-state.ts';
import { fleetPaths } from '../names.ts';
import { StateStore } from '../state/state-store.ts';
import { retryTasks } from '../retry-tasks.ts';
import { TaskGraph } from '../task-graph.ts';
import { Board } from './board.ts';
import { requeueActive } from './task-changes.ts';

const graph = TaskGraph.parse({
  feature: 'f',
  tasks: [
    { id: 'A', title: 'a', level: 1 },
    { id: 'B', title: 'b', level: 1 },
  ],
});

let root = '';
let store: StateStore;
let now = 0;
let events: string[] = [];
let board: Board;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-board-'));
  store = new StateStore(fleetPaths(root, 'f'));
  const tasks = Object.fromEntries(graph.tasks.map(({ id }) => [id, { status: 'pending' }]));
  store.create(FleetState.parse({ feature: 'f', started_at: 'now', tasks }));
  now = Date.parse('2026-01-01T00:00:00Z');
  events = [];
  board = new Board({
    store,
    graph,
    backoff: { strategy: 'fixed', baseSeconds: 10, maxSeconds: 10 },
    retries: 1,
    now: () => now,
    random: () => 0.5,
    onEvent: (event) => events.push(event),
  });
});
afterEach(() => rmSync(root, { recursive: true }));

const task = (id: string) => store.require().tasks[id];

describe('board', () => {
  test('[FL-03] two workers never get the same task', () => {
    const claims = [board.claim(1, 0), board.claim(1, 1), board.claim(1, 0)];
    expect(claims.map((claim) => claim?.task.id)).toEqual(['A', 'B', undefined]);
    expect([task('A')?.worker_id, task('B')?.worker_id]).toEqual([0, 1]);
  });

  test('[FL-12] a failed attempt waits, the last one ends it, and attempts are counted', () => {
    expect(board.claim(1, 0)?.attempt).toBe(1);
    board.fail('A', 'no', 1);
    expect(task('A')?.status).toBe('waiting_retry');
    expect(task('A')).toMatchObject({
      retry_count: 1,
      error: 'no',
      next_retry_at: '2026-01-01T00:00:10.000Z',
    });
    expect(board.claim(1, 0)?.task.id).toBe('B');
    now += 10_000;
    expect(board.claim(1, 0)).toMatchObject({ attempt: 2, task: { id: 'A' } });
    board.fail('A', 'no', 1);
    expect(task('A')?.status).toBe('failed');
    expect(task('A')).toMatchObject({ status: 'failed', next_retry_at: null });
    expect(events).toContain('task_failed');
  });

  test('[FL-12] the loss of a worker is none of its task, unless it loses one after the other', () => {
    board.claim(1, 0);
    board.lose('A', 'gone');
    expect(task('A')).toMatchObject({ status: 'pending', retry_count: 0, losses: 1 });
    board.lose('A', 'gone');
    board.lose('A', 'gone');
    expect(task('A')).toMatchObject({ status: 'waiting_retry', retry_count: 1, losses: 3 });
  });

  test('[FL-06] a change from another process is seen and not overwritten', () => {
    board.claim(1, 0);
    new StateStore(fleetPaths(root, 'f')).update((state) => {
      const other = state.tasks['B'];
      if (other !== undefined) other.status = 'blocked';
    });
    board.begin('A');
    expect([task('A')?.status, task('B')?.status]).toEqual(['in_progress', 'blocked']);
    expect(board.claim(1, 1)).toBeUndefined();
  });

  test('[FL-03] whoever waits hears of what others do, of the clock, and of a stop', async () => {
    const controller = new AbortController();
    const heard: string[] = [];
    const waits = [
      board.changed(undefined, controller.signal).then(() => heard.push('change')),
      board.changed(now + 5, new AbortController().signal).then(() => heard.push('clock')),
    ];
    board.fail('A', 'no', 1);
    await Promise.all(waits);
    expect(heard).toEqual(['change', 'clock']);
    const stopped = board.changed(undefined, controller.signal);
    controller.abort();
    await stopped;
  });

  test('[FL-06] complete says who, what and how long', () => {
    board.changeWorker(0, { status: 'running' });
    board.claim(1, 0);
    board.complete('A', 0, { commit: 'c0ffee', files: ['x'], foreign: ['x'], durationMs: 12.4 });
    expect(task('A')).toMatchObject({
      status: 'complete',
      commit: 'c0ffee',
      changed_files: ['x'],
      foreign_files: ['x'],
      duration_ms: 12,
      error: null,
    });
    expect(store.require().workers['0']?.tasks_completed).toBe(1);
  });

  test('[FL-03] what an agent says in place of done stays with its task until that is done', () => {
    board.changeWorker(0, { status: 'running' });
    board.claim(1, 0);
    board.willTake('A', { commit: 'c0ffee', files: ['x'], foreign: [] }, 'half of it');
    expect(task('A')).toMatchObject({ commit: 'c0ffee', exit_code: 2, said: 'half of it' });
    board.pause('A', 0, { commit: 'c0ffee', reason: 'half of it' });
    expect(task('A')).toMatchObject({
      status: 'paused',
      said: 'half of it',
      wip: { commit: 'c0ffee', worker_id: 0 },
    });
    expect(board.claim(1, 0)).toMatchObject({ task: { id: 'A' }, state: { said: 'half of it' } });
    board.block('A', 'red or blue?', 4);
    expect(task('A')).toMatchObject({ status: 'blocked', exit_code: 4, said: 'red or blue?' });
    expect(retryTasks(store, { task: 'A', reset: false, answer: 'blue' })).toEqual(['A']);
    expect(board.claim(1, 0)).toMatchObject({ state: { said: 'red or blue?', answer: 'blue' } });
    board.complete('A', 0, { commit: 'c0ffee', files: [], foreign: [], durationMs: 1 });
    expect(task('A')).toMatchObject({ said: null, answer: null, wip: null });
  });

  test('[FL-12] work that was put aside goes on where its commits are, also after a loss', () => {
    for (const worker of [0, 1]) board.setAlive(worker, true);
    board.claim(1, 0);
    board.pause('A', 0, { commit: 'c0ffee', reason: '' });
    board.claim(1, 0);
    board.lose('A', 'gone');
    expect(board.claim(1, 1)?.task.id).toBe('B');
    expect(board.claim(1, 1)).toBeUndefined();
    expect(board.claim(1, 0)?.task.id).toBe('A');
  });

  test('[FL-06] what agents do and cost is in the state while they work', () => {
    board.changeWorker(0, { status: 'running' });
    board.claim(1, 0);
    const figures = { turns: 2, tool_calls: 1, input_tokens: 10, output_tokens: 5, cost_usd: 0.5 };
    board.noteAgent(0, 'A', { figures, activity: 'Bash: make' });
    expect(task('A')?.agent).toEqual(figures);
    expect(store.require().workers['0']?.activity).toBe('Bash: make');
  });

  test('[FL-15] after a crash what somebody was at can be taken again', () => {
    board.claim(1, 0);
    board.begin('A');
    store.update((state) => requeueActive(state, 'now'));
    expect(task('A')).toMatchObject({ status: 'pending', worker_id: null });
    expect(board.claim(1, 1)?.task.id).toBe('A');
  });
});
