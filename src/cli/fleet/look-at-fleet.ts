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

/** Reads everything that `status` shows. The graph is read once: a run does not change it. */
export class FleetWatcher {
  readonly #open: OpenFeature;
  #graph: Promise<TaskGraph | undefined> | undefined;

  constructor(open: OpenFeature) {
    this.#open = open;
  }

  async look(): Promise<Look> {
    const { store, paths } = this.#open;
    // Before the state: one that ends in between has written everything that the state then has.
    const orchestrator = findOrchestrator(paths);
    const state = store.require();
    this.#graph ??= readGraph(paths.root, paths.feature, state.task_graph ?? undefined)
      .then(({ graph }) => graph)
      // Titles and estimates are missing then, nothing else.
      .catch(() => undefined);
    const view = toStatusView({ state, graph: await this.#graph, orchestrator, now: new Date() });
    return { state, view };
  }
}
