import type { FleetState } from '../fleet-state.ts';
import type { TaskGraph } from '../task-graph.ts';
import { toStatusView } from './status-view.ts';

export type FinalReport = ReturnType<typeof toFinalReport>;

/** What each task did, took and changed, for the end of a run. */
export function toFinalReport(state: FleetState, graph: TaskGraph | undefined, now: Date) {
  const view = toStatusView({ state, graph, orchestrator: undefined, now });
  const tasks = view.tasks.map((task) => ({
    ...task,
    /** What it changed that it does not own. */
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
      /** Of all tasks together; the run itself took `elapsedMs`. */
      workMs: sum(tasks.map(({ durationMs }) => durationMs ?? 0)),
      elapsedMs: view.elapsedMs,
      changedFiles: files.size,
      commits: new Set(
        tasks.flatMap(({ status, commit }) => (status === 'complete' && commit ? [commit] : [])),
      ).size,
      /** What the agents have cost, as far as they said so. */
      agent: view.agent,
      restarts: sum(view.workers.map(({ restarts }) => restarts)),
    },
    attention: view.attention,
  };
}
