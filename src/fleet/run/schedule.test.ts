import { describe, expect, test } from 'vitest';
import { FleetState, type TaskState } from '../fleet-state.ts';
import { TaskGraph } from '../task-graph.ts';
import { claimable, levelsOf, progressOf } from './schedule.ts';

const graph = TaskGraph.parse({
  feature: 'f',
  tasks: [
    { id: 'A', title: 'a', level: 1, estimate_minutes: 5 },
    { id: 'B', title: 'b', level: 1, estimate_minutes: 20 },
    { id: 'C', title: 'c', level: 3, dependencies: ['A'] },
  ],
});

function stateWith(tasks: Record<string, Partial<TaskState>>): FleetState {
  const entries = Object.entries(tasks).map(([id, task]) => [id, { status: 'pending', ...task }]);
  return FleetState.parse({ feature: 'f', started_at: '', tasks: Object.fromEntries(entries) });
}

function idsFor(state: FleetState, asked: Partial<Parameters<typeof claimable>[2]> = {}): string[] {
  const wish = { level: 1, worker: 0, now: 1000, alive: new Set([0, 1]), ...asked };
  return claimable(graph, state, wish).map(({ id }) => id);
}

describe('what can be claimed', () => {
  test('[FL-03] the longest first, and only of this level', () => {
    expect(idsFor(stateWith({}))).toEqual(['B', 'A']);
    expect(levelsOf(graph)).toEqual([1, 3]);
  });

  test('[FL-03] nothing whose dependencies are not complete', () => {
    expect(idsFor(stateWith({ A: { status: 'failed' } }), { level: 3 })).toEqual([]);
    expect(idsFor(stateWith({ A: { status: 'complete' } }), { level: 3 })).toEqual(['C']);
  });

  test.each(['claimed', 'in_progress', 'verifying', 'complete', 'failed', 'blocked'] as const)(
    '[FL-03] nothing that is %s',
    (status) => expect(idsFor(stateWith({ A: { status }, B: { status } }))).toEqual([]),
  );

  test('[FL-12] a failed attempt only after its time', () => {
    const at = (time: number): FleetState =>
      stateWith({
        A: { status: 'waiting_retry', next_retry_at: new Date(time).toISOString() },
        B: { status: 'complete' },
      });
    expect(idsFor(at(1001))).toEqual([]);
    expect(idsFor(at(1000))).toEqual(['A']);
  });

  test('[FL-03] what was put aside goes to the worker that has its commits, as long as it is there', () => {
    const state = stateWith({ A: { status: 'paused', worker_id: 1 }, B: { status: 'complete' } });
    expect(idsFor(state, { worker: 0 })).toEqual([]);
    expect(idsFor(state, { worker: 1 })).toEqual(['A']);
    expect(idsFor(state, { worker: 0, alive: new Set([0]) })).toEqual(['A']);
  });
});

describe('how far a level is', () => {
  test('[FL-05] complete when every task is, and only then', () => {
    const done = { A: { status: 'complete' }, B: { status: 'complete' } } as const;
    expect(progressOf(graph, stateWith(done), 1)).toEqual({ kind: 'complete' });
    expect(progressOf(graph, stateWith({ A: done.A }), 1)).toEqual({ kind: 'open', wakeAt: undefined });
  });

  test('[FL-05] stuck when the rest has ended badly, and not before', () => {
    expect(
      progressOf(graph, stateWith({ A: { status: 'failed' }, B: { status: 'in_progress' } }), 1).kind,
    ).toBe('open');
    expect(progressOf(graph, stateWith({ A: { status: 'failed' }, B: { status: 'blocked' } }), 1)).toEqual({
      kind: 'stuck',
      tasks: ['A', 'B'],
    });
    expect(progressOf(graph, stateWith({ A: { status: 'failed' }, B: { status: 'complete' } }), 1)).toEqual({
      kind: 'stuck',
      tasks: ['A'],
    });
  });

  test('[FL-12] it says when the next task may be tried again', () => {
    const task = (time: number) =>
      ({ status: 'waiting_retry', next_retry_at: new Date(time).toISOString() }) as const;
    expect(progressOf(graph, stateWith({ A: task(7000), B: task(5000) }), 1)).toEqual({
      kind: 'open',
      wakeAt: 5000,
    });
  });
});
