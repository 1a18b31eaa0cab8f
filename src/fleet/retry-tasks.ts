import { HotcellError } from '../core/errors.ts';
import type { FleetState, TaskState, TaskStatus } from './fleet-state.ts';
import { ENDED_BADLY } from './run/schedule.ts';
import { appendEvent, type StateStore } from './state/state-store.ts';

const RETRYABLE: ReadonlySet<TaskStatus> = new Set(['failed', 'blocked', 'paused', 'waiting_retry']);

export interface RetryWish {
  /** One of them; otherwise all that failed or are blocked. */
  readonly task: string | undefined;
  /** Forget earlier failures; otherwise there is one more attempt. */
  readonly reset: boolean;
  /** For the next attempt: what its agent asked, or has to know. */
  readonly answer?: string | undefined;
  /** Words about a name that is nearly right, such as `; did you mean A-1?`. */
  suggest?(name: string, known: readonly string[]): string;
}

/** Makes tasks ready to be taken again, and returns which. A living orchestrator takes them at once. */
export function retryTasks(store: StateStore, wish: RetryWish): string[] {
  return store.update((state) => {
    const ids = wish.task === undefined ? listFailed(state) : [requireRetryable(state, wish.task, wish)];
    for (const id of ids) {
      const task = state.tasks[id];
      if (task === undefined) continue;
      state.tasks[id] = toPending(task, wish);
      appendEvent(state, 'task_retry_requested', { task_id: id, reset: wish.reset });
    }
    if (ids.length > 0) Object.assign(state, { paused: false, error: null, finished_at: null });
    return ids;
  });
}

function listFailed(state: FleetState): string[] {
  return Object.entries(state.tasks).flatMap(([id, { status }]) => (ENDED_BADLY.has(status) ? [id] : []));
}

function requireRetryable(state: FleetState, id: string, wish: RetryWish): string {
  const known = Object.hasOwn(state.tasks, id) ? state.tasks[id] : undefined;
  if (known === undefined) {
    const ids = Object.keys(state.tasks);
    throw new HotcellError(
      'FLEET_UNKNOWN',
      `feature ${state.feature} has no task ${JSON.stringify(id)}${wish.suggest?.(id, ids) ?? ''}`,
      { hint: `hotcell fleet status --feature ${state.feature} --tasks lists them.` },
    );
  }
  if (RETRYABLE.has(known.status)) return id;
  throw new HotcellError('INVALID_REQUEST', `${id} is ${known.status}; there is nothing to retry`, {
    hint:
      known.status === 'complete'
        ? 'Add a task to the graph for what is still to be done.'
        : `It is taken by itself as soon as it is its turn; hotcell fleet resume --feature ${state.feature} goes on if nobody is at it.`,
  });
}

function toPending(task: TaskState, { reset, answer }: RetryWish): TaskState {
  // A task has failed for good one failure after its last attempt; one less leaves room for exactly one.
  const kept = task.status === 'failed' ? Math.max(0, task.retry_count - 1) : task.retry_count;
  return {
    ...task,
    status: 'pending',
    worker_id: null,
    error: null,
    exit_code: null,
    next_retry_at: null,
    retry_count: reset ? 0 : kept,
    ...(answer === undefined ? {} : { answer }),
    ...(reset && 'losses' in task ? { losses: 0 } : {}),
    updated_at: new Date().toISOString(),
  };
}
