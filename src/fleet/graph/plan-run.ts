import { levelsOf } from '../run/schedule.ts';
import type { Task, TaskGraph } from '../task-graph.ts';

/** For a task that says nothing. */
const USUAL_TASK_MINUTES = 15;

interface WorkerShare {
  readonly worker: number;
  readonly tasks: readonly Task[];
  readonly minutes: number;
}

function minutesOf(task: Task): number {
  return task.estimate_minutes ?? USUAL_TASK_MINUTES;
}

/** What a run would do, as far as it can be known before. The graph must be a valid one. */
export function planRun(graph: TaskGraph, workers: number) {
  const levels = levelsOf(graph).map((level) => {
    const tasks = graph.tasks.filter((task) => task.level === level);
    const shares = shareTasks(tasks, workers);
    // Until the last worker is done.
    const minutes = Math.max(...shares.map((share) => share.minutes));
    return { level, tasks, shares, minutes };
  });
  return {
    feature: graph.feature,
    workers,
    levels,
    taskCount: graph.tasks.length,
    /** Of all tasks, one after the other. */
    taskMinutes: sum(graph.tasks.map(minutesOf)),
    criticalPath: findCriticalPath(levels.flatMap(({ tasks }) => tasks)),
    /** With this many workers, level by level. */
    minutes: sum(levels.map(({ minutes }) => minutes)),
    /** How many tasks have no estimate of their own. */
    guessed: graph.tasks.filter((task) => task.estimate_minutes === undefined).length,
  };
}

/**
 * The longest first, each to the worker that has the least; among equals the order of the graph decides. Only workers that
 * have something to do.
 */
function shareTasks(tasks: readonly Task[], workers: number): WorkerShare[] {
  const shares = Array.from({ length: workers }, (_, worker) => ({
    worker,
    tasks: [] as Task[],
    minutes: 0,
  }));
  for (const task of tasks.toSorted((left, right) => minutesOf(right) - minutesOf(left))) {
    const least = shares.reduce((best, share) => (isLess(share, best) ? share : best));
    least.tasks.push(task);
    least.minutes += minutesOf(task);
  }
  return shares.filter((share) => share.tasks.length > 0);
}

/** Tasks of no minutes are shared out too. */
function isLess(left: WorkerShare, right: WorkerShare): boolean {
  return (
    left.minutes < right.minutes || (left.minutes === right.minutes && left.tasks.length < right.tasks.length)
  );
}

/** The longest chain of dependencies: no number of workers is faster. */
function findCriticalPath(sorted: readonly Task[]): { tasks: readonly string[]; minutes: number } {
  const ends = new Map<string, { readonly before: string | undefined; readonly minutes: number }>();
  let last: string | undefined;
  let longest = -1;
  // Dependencies are in lower levels, so they are known when they are asked for.
  for (const task of sorted) {
    const before = task.dependencies.toSorted((left, right) => minutesAt(right) - minutesAt(left))[0];
    const minutes = minutesOf(task) + (before === undefined ? 0 : minutesAt(before));
    ends.set(task.id, { before, minutes });
    if (minutes > longest) [last, longest] = [task.id, minutes];
  }
  function minutesAt(id: string): number {
    return ends.get(id)?.minutes ?? 0;
  }
  const tasks: string[] = [];
  for (let id = last; id !== undefined; id = ends.get(id)?.before) tasks.unshift(id);
  return { tasks, minutes: Math.max(0, longest) };
}

/** The same run with one worker, two, and so on up to twice as many as planned. */
export function whatIf(graph: TaskGraph, workers: number) {
  const alone = planRun(graph, 1).minutes;
  return Array.from({ length: 2 * workers }, (_, index) => {
    const count = index + 1;
    const { minutes, taskMinutes } = planRun(graph, count);
    return {
      workers: count,
      minutes,
      /** Against one worker. */
      speedup: minutes === 0 ? 1 : alone / minutes,
      /** How much of the workers' time has a task in it, from 0 to 1. */
      used: minutes === 0 ? 1 : taskMinutes / (minutes * count),
    };
  });
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
