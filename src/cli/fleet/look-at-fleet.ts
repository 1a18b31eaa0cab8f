import { toStatusView, type StatusView } from '../../fleet/status/status-view.ts';
import type { FleetState } from '../../fleet/fleet-state.ts';
import { readGraph } from '../../fleet/graph/read-graph.ts';
import { findOrchestrator } from '../../fleet/state/orchestrator-lock.ts';
import type { TaskGraph } from '../../fleet/task-graph.ts';
import type { OpenFeature } from './open-feature.ts';

export interface Look {
  readonly state: FleetState;
  readonly view: StatusView;
}

/** Reads everything that `status` shows, at each call. The graph is read once: a run does not change it. */
export function watchFleet({ store, paths }: OpenFeature): () => Promise<Look> {
  let graph: Promise<TaskGraph | undefined> | undefined;
  return async () => {
    // Before the state: one that ends in between has written everything that the state then has.
    const orchestrator = findOrchestrator(paths);
    const state = store.require();
    graph ??= readGraph(paths.root, paths.feature, state.task_graph ?? undefined)
      .then((read) => read.graph)
      // Titles and estimates are missing then, nothing else.
      .catch(() => undefined);
    const view = toStatusView({ state, graph: await graph, orchestrator, now: new Date() });
    return { state, view };
  };
}
