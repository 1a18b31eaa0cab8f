import type { FleetState, TaskState } from '../fleet-state.ts';
import type { Task, TaskGraph } from '../task-graph.ts';

/** Somebody works on it. */
export const ACTIVE: ReadonlySet<TaskState['status']> = new Set(['claimed', 'in_progress', 'verifying']);
/** Waits for somebody to take it. */
const WAITING: ReadonlySet<TaskState['status']> = new Set(['todo', 'pending', 'paused']);
/** Waits for a person. */
export const ENDED_BADLY: ReadonlySet<TaskState['status']> = new Set(['failed', 'blocked']);

export function levelsOf(graph: Pick<TaskGraph, 'tasks'>): number[] {
  return [...new Set(graph.tasks.map(({ level }) => level))].toSorted((a, b) => a - b);
}

function tasksOf(graph: TaskGraph, level: number): Task[] {
  return graph.tasks.filter((task) => task.level === level);
}

/** The tasks of a level that can begin now, the longest first: the level ends with its last task. */
export function claimable(
  graph: TaskGraph,
  state: FleetState,
  asked: {
    readonly level: number;
    readonly worker: number;
    readonly now: number;
    readonly alive: ReadonlySet<number>;
  },
): Task[] {
  const statusOf = (id: string): TaskState['status'] => state.tasks[id]?.status ?? 'pending';
  return tasksOf(graph, asked.level)
    .filter(({ id, dependencies }) => {
      const task = state.tasks[id];
      if (!dependencies.every((other) => statusOf(other) === 'complete')) return false;
      const isDue =
        task?.status === 'waiting_retry'
          ? Date.parse(task.next_retry_at ?? '') <= asked.now
          : WAITING.has(statusOf(id));
      return isDue && isFor(task, asked);
    })
    .toSorted((a, b) => (b.estimate_minutes ?? 0) - (a.estimate_minutes ?? 0));
}

/** What was begun and put aside goes on where its commits are, as long as that worker is there. */
function isFor(
  task: TaskState | undefined,
  { worker, alive }: { readonly worker: number; readonly alive: ReadonlySet<number> },
): boolean {
  const owner = task?.wip?.worker_id ?? (task?.status === 'paused' ? task.worker_id : undefined);
  return owner === null || owner === undefined || owner === worker || !alive.has(owner);
}

export type LevelProgress =
  | { readonly kind: 'complete' }
  /** Nobody works, and nothing will begin by itself. */
  | { readonly kind: 'stuck'; readonly tasks: readonly string[] }
  /** `wakeAt`: when the next task may be tried again. */
  | { readonly kind: 'open'; readonly wakeAt: number | undefined };

export function progressOf(graph: TaskGraph, state: FleetState, level: number): LevelProgress {
  const tasks = tasksOf(graph, level).map(({ id }) => ({ id, task: state.tasks[id] }));
  if (tasks.every(({ task }) => task?.status === 'complete')) return { kind: 'complete' };
  const bad = tasks
    .filter(({ task }) => task !== undefined && ENDED_BADLY.has(task.status))
    .map(({ id }) => id);
  const isOpen = tasks.some(({ id, task }) => task?.status !== 'complete' && !bad.includes(id));
  if (!isOpen) return { kind: 'stuck', tasks: bad };
  const times = tasks
    .filter(({ task }) => task?.status === 'waiting_retry')
    .map(({ task }) => Date.parse(task?.next_retry_at ?? ''))
    .filter((time) => !Number.isNaN(time));
  return { kind: 'open', wakeAt: times.length === 0 ? undefined : Math.min(...times) };
}
