import type { FleetState } from '../fleet-state.ts';
import type { StatusView } from './status-view.ts';

const EVENTS_SHOWN = 10;

/** What `status --json` prints: what stands in the state first, then what follows from it. */
export function toStatusJson(state: FleetState, view: StatusView): Record<string, unknown> {
  const { orchestrator } = view;
  return {
    feature: state.feature,
    current_level: state.current_level,
    paused: state.paused,
    error: state.error ?? null,
    tasks: state.tasks,
    workers: state.workers,
    levels: state.levels,
    events: state.execution_log.slice(-EVENTS_SHOWN),
    metrics: state.metrics ?? null,
    run_state: view.runState,
    started_at: state.started_at,
    finished_at: state.finished_at ?? null,
    mode: state.mode ?? null,
    mode_reason: state.mode_reason ?? null,
    worktree_bytes: state.worktree_bytes ?? null,
    worktree_bound: state.worktree_bound ?? null,
    orchestrator:
      orchestrator === undefined
        ? null
        : { pid: orchestrator.pid, started_at: orchestrator.started_at, host: orchestrator.host ?? null },
    progress: view.progress,
    agent: view.agent ?? null,
    planning_agent: view.planning ?? null,
    levels_agent: Object.fromEntries(view.levels.map(({ level, agent }) => [level, agent ?? null])),
    elapsed_ms: view.elapsedMs ?? null,
    estimated_remaining_ms: view.remainingMs ?? null,
    attention: view.attention,
  };
}
