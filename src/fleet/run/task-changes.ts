import type { FleetState, TaskState } from '../fleet-state.ts';
import { appendEvent } from '../state/state-store.ts';
import { ACTIVE } from './schedule.ts';

/** Commits of a task that the host has. */
export interface Committed {
  readonly commit: string;
  readonly files: readonly string[];
  /** Those that the task does not own. */
  readonly foreign: readonly string[];
}

/** How a task was done. */
export interface Done extends Committed {
  readonly durationMs: number;
}

interface By {
  readonly worker: number;
  readonly time: string;
}

export function completeTask(state: FleetState, id: string, done: Done & By): void {
  state.tasks[id] = {
    ...state.tasks[id],
    status: 'complete',
    retry_count: state.tasks[id]?.retry_count ?? 0,
    worker_id: done.worker,
    ...toCommitFields(done),
    duration_ms: Math.round(done.durationMs),
    completed_at: done.time,
    updated_at: done.time,
    exit_code: 0,
    error: null,
    next_retry_at: null,
    wip: null,
    said: null,
    answer: null,
  };
  appendEvent(state, 'task_complete', { task_id: id, worker_id: done.worker, commit: done.commit });
}

/** What there is so far is committed; the same worker goes on with it. */
export function pauseTask(
  state: FleetState,
  id: string,
  { commit, reason, worker, time }: By & { readonly commit: string; readonly reason: string | null },
): void {
  const before = state.tasks[id];
  state.tasks[id] = {
    ...before,
    status: 'paused',
    retry_count: before?.retry_count ?? 0,
    worker_id: worker,
    exit_code: 2,
    commit,
    wip: { commit, worker_id: worker },
    said: reason,
    updated_at: time,
  };
  appendEvent(state, 'worker_checkpoint', { task_id: id, worker_id: worker, commit });
}

export function toCommitFields({ commit, files, foreign }: Committed): Partial<TaskState> {
  return { commit, changed_files: [...files], foreign_files: [...foreign] };
}

/** After a crash: what somebody was at is to be taken again. */
export function requeueActive(state: FleetState, time: string): string[] {
  const active = Object.entries(state.tasks).filter(([, { status }]) => ACTIVE.has(status));
  for (const [id, task] of active) {
    state.tasks[id] = { ...task, status: 'pending', worker_id: null, updated_at: time };
    appendEvent(state, 'task_requeued', { task_id: id, reason: 'the orchestrator ended' });
  }
  return active.map(([id]) => id);
}
