import { WORKING } from '../fleet-state.ts';
import type { TaskGraph } from '../task-graph.ts';
import type { TaskView, WorkerView } from './status-view.ts';

interface Known {
  readonly tasks: readonly TaskView[];
  readonly graph: TaskGraph | undefined;
  readonly workers: readonly Pick<WorkerView, 'status'>[];
}

/**
 * Milliseconds that the rest will take, or undefined while nothing is known. Levels come one after the other; within one,
 * the workers share the work, but no task is split. How estimates and truth relate is learnt from what is complete.
 */
export function estimateRemainingMs({ tasks, graph, workers }: Known): number | undefined {
  const minutes = new Map((graph?.tasks ?? []).map(({ id, estimate_minutes: value }) => [id, value]));
  const done = tasks.filter(({ status, durationMs }) => status === 'complete' && durationMs !== undefined);
  const average = mean(done.map(({ durationMs }) => durationMs ?? 0));
  const factor = mean(
    done.flatMap(({ id, durationMs }) => {
      const planned = minutes.get(id);
      return planned ? [(durationMs ?? 0) / (planned * 60_000)] : [];
    }),
  );
  const expect = ({ id }: TaskView): number | undefined => {
    const planned = minutes.get(id);
    return planned ? planned * 60_000 * (factor ?? 1) : average;
  };
  const open = tasks.filter(({ status }) => !['complete', 'failed', 'blocked'].includes(status));
  const hands = Math.max(1, workers.filter(({ status }) => WORKING.has(status)).length);
  let total = 0;
  for (const level of new Set(open.map((task) => task.level))) {
    const rests: number[] = [];
    for (const task of open.filter((candidate) => candidate.level === level)) {
      const whole = expect(task);
      if (whole === undefined) return undefined;
      const spent = task.status === 'complete' ? 0 : (task.durationMs ?? 0);
      rests.push(Math.max(0, whole - spent) + (task.retryInMs ?? 0));
    }
    total += Math.max(...rests, rests.reduce((sum, rest) => sum + rest, 0) / hands);
  }
  return Math.round(total);
}

function mean(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}
