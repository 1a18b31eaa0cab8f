import type { FleetState } from '../fleet-state.ts';
import type { TaskGraph } from '../task-graph.ts';
import type { AttentionLine } from './attention.ts';
import { toStatusView, type Progress, type TaskView } from './status-view.ts';

export interface ReportedTask extends TaskView {
  /** What it changed that it does not own. */
  readonly foreignFiles: readonly string[];
}

export interface FinalReport {
  readonly feature: string;
  readonly tasks: readonly ReportedTask[];
  readonly progress: Progress;
  readonly totals: {
    readonly attempts: number;
    /** Of all tasks together; the run itself took `elapsedMs`. */
    readonly workMs: number;
    readonly elapsedMs: number | undefined;
    readonly changedFiles: number;
    readonly commits: number;
    readonly restarts: number;
  };
  readonly attention: readonly AttentionLine[];
}

/** What each task did, took and changed, for the end of a run. */
export function toFinalReport(state: FleetState, graph: TaskGraph | undefined, now: Date): FinalReport {
  const view = toStatusView({ state, graph, orchestrator: undefined, now });
  const tasks = view.tasks.map((task) => ({
    ...task,
    foreignFiles: state.tasks[task.id]?.foreign_files ?? [],
  }));
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
  const files = new Set(Object.values(state.tasks).flatMap(({ changed_files: names }) => names ?? []));
  return {
    feature: state.feature,
    tasks,
    progress: view.progress,
    totals: {
      attempts: sum(tasks.map(({ attempts }) => attempts)),
      workMs: sum(tasks.map(({ durationMs }) => durationMs ?? 0)),
      elapsedMs: view.elapsedMs,
      changedFiles: files.size,
      commits: new Set(
        tasks.flatMap(({ status, commit }) => (status === 'complete' && commit ? [commit] : [])),
      ).size,
      restarts: sum(view.workers.map(({ restarts }) => restarts)),
    },
    attention: view.attention,
  };
}
