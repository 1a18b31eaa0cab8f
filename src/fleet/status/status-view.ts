import { AWAKE, type FleetState, type TaskState, type TaskStatus, type WorkerState } from '../fleet-state.ts';
import { ACTIVE } from '../run/schedule.ts';
import { ledMs, timeOf } from '../state/led-time.ts';
import type { OrchestratorRecord } from '../state/orchestrator-lock.ts';
import type { TaskGraph } from '../task-graph.ts';
import { addFigures, NO_FIGURES, type AgentFigures } from '../worker/agent-watch.ts';
import { toAttention } from './attention.ts';
import { estimateRemainingMs } from './estimate.ts';

export type Progress = ReturnType<typeof countTasks>;
export type LevelView = ReturnType<typeof toLevelViews>[number];
export type WorkerView = ReturnType<typeof toWorkerView>;
export type TaskView = ReturnType<typeof toTaskViews>[number];
export type StatusView = ReturnType<typeof toStatusView>;

/** `running`: somebody works on it. `stopped`: something is left to do, and nobody is at it. */
export type RunState = 'running' | 'stopping' | 'paused' | 'stopped' | 'complete' | 'failed';

interface Seen {
  readonly state: FleetState;
  /** Titles, estimates and tasks that the state does not know yet. */
  readonly graph: TaskGraph | undefined;
  readonly orchestrator: OrchestratorRecord | undefined;
  readonly now: Date;
}

export function toStatusView(seen: Seen) {
  const { state, orchestrator, now } = seen;
  const tasks = toTaskViews(seen);
  const progress = countTasks(tasks);
  const runState = toRunState(state, progress, orchestrator !== undefined);
  const workers = Object.values(state.workers)
    .toSorted((one, other) => one.worker_id - other.worker_id)
    .map((worker) => toWorkerView(worker, seen));
  return {
    feature: state.feature,
    runState,
    error: state.error ?? undefined,
    mode: state.mode ?? undefined,
    worktreeBytes: state.worktree_bytes ?? undefined,
    worktreeBound: state.worktree_bound ?? undefined,
    orchestrator,
    currentLevel: state.current_level,
    progress,
    /** Of tasks, and of planning them. */
    agent: sumFigures([...tasks, { agent: state.planning }]),
    planning: state.planning,
    /** Without the pauses between runs. */
    elapsedMs: ledMs(state, orchestrator, now),
    remainingMs:
      runState === 'running' ? estimateRemainingMs({ tasks, graph: seen.graph, workers }) : undefined,
    levels: toLevelViews(seen, tasks),
    workers,
    tasks,
    attention: toAttention({ state, tasks, isAlive: orchestrator !== undefined }),
  };
}

function toRunState(state: FleetState, progress: Progress, isAlive: boolean): RunState {
  if (isAlive) {
    const all = Object.values(state.workers);
    return all.length > 0 && all.every(({ status }) => status === 'stopping') ? 'stopping' : 'running';
  }
  const isMerged = Object.values(state.levels).every(({ status }) => status === 'complete');
  if (progress.total > 0 && progress.complete === progress.total && isMerged) return 'complete';
  if (state.paused) return 'paused';
  return state.error || progress.failed > 0 ? 'failed' : 'stopped';
}

/** Those of the graph in its order, then what only the state has. */
function toTaskViews({ state, graph, orchestrator, now }: Seen) {
  // Of a task that somebody was at who is dead, no time has passed since.
  const until = orchestrator === undefined ? (timeOf(state.led_until) ?? now.getTime()) : now.getTime();
  const planned = new Map((graph?.tasks ?? []).map((task) => [task.id, task]));
  const ids = [...planned.keys(), ...Object.keys(state.tasks).filter((id) => !planned.has(id))];
  const views = ids.map((id) => {
    const task: TaskState = state.tasks[id] ?? { status: 'pending', retry_count: 0 };
    const { title, level } = planned.get(id) ?? {};
    return { id, title: title ?? '', level: task.level ?? level, ...toTaskFacts(task, now, until) };
  });
  return views.toSorted((one, other) => (one.level ?? Infinity) - (other.level ?? Infinity) || 0);
}

function toTaskFacts(task: TaskState, now: Date, until: number) {
  const began = timeOf(task.started_at) ?? timeOf(task.claimed_at);
  const isActive = ACTIVE.has(task.status);
  const nextRetry = task.status === 'waiting_retry' ? timeOf(task.next_retry_at) : undefined;
  const hasRun = isActive || task.status === 'complete' || task.status === 'blocked';
  return {
    status: task.status,
    worker: task.worker_id ?? undefined,
    // `retry_count` counts failures: the attempt that goes on, or went well, comes on top.
    attempts: task.retry_count + (hasRun ? 1 : 0),
    /** So far, if somebody is at it. */
    durationMs:
      isActive && began !== undefined ? Math.max(0, until - began) : (task.duration_ms ?? undefined),
    retryInMs: nextRetry === undefined ? undefined : Math.max(0, nextRetry - now.getTime()),
    commit: task.commit ?? undefined,
    changedFiles: task.changed_files?.length,
    /** What its agents have cost, if they said so. */
    agent: task.agent,
    error: task.error ?? undefined,
  };
}

function toWorkerView(worker: WorkerState, { state, orchestrator, now }: Seen) {
  const isAlive = orchestrator !== undefined;
  const task = worker.current_task ?? undefined;
  const began = task === undefined ? undefined : timeOf(state.tasks[task]?.started_at);
  return {
    worker: worker.worker_id,
    /** As the state has it, but never alive without an orchestrator. */
    status: !isAlive && AWAKE.has(worker.status) ? 'gone' : worker.status,
    task: isAlive ? task : undefined,
    /** What its agent does now. */
    activity: isAlive && task !== undefined ? (worker.activity ?? undefined) : undefined,
    /** How long it has been at its task. */
    busyMs: isAlive && began !== undefined ? Math.max(0, now.getTime() - began) : undefined,
    completed: worker.tasks_completed,
    restarts: worker.restarts,
    cell: worker.container_name ?? worker.container_id ?? undefined,
    branch: worker.branch ?? undefined,
    error: worker.error ?? undefined,
  };
}

function toLevelViews({ state, graph }: Seen, tasks: readonly TaskView[]) {
  const numbers = new Set([
    ...Object.keys(state.levels).map(Number),
    ...tasks.flatMap(({ level }) => (level === undefined ? [] : [level])),
  ]);
  return [...numbers]
    .toSorted((one, other) => one - other)
    .map((level) => {
      const known = state.levels[String(level)];
      return {
        level,
        name: graph?.levels?.[String(level)]?.name,
        status: known?.status ?? 'pending',
        mergeStatus: known?.merge_status ?? undefined,
        mergeCommit: known?.merge_commit ?? undefined,
        agent: sumFigures(tasks.filter((task) => task.level === level)),
        ...countTasks(tasks.filter((task) => task.level === level)),
      };
    });
}

/** Undefined: no agent has said what it costs. */
function sumFigures(tasks: readonly Pick<TaskState, 'agent'>[]): AgentFigures | undefined {
  const known = tasks.flatMap(({ agent }) => agent ?? []);
  return known.length === 0 ? undefined : known.reduce(addFigures, NO_FIGURES);
}

/** What the statuses come down to for somebody who watches. */
function countTasks(tasks: readonly TaskView[]) {
  const count = (holds: (status: TaskStatus) => boolean): number =>
    tasks.filter(({ status }) => holds(status)).length;
  const complete = count((status) => status === 'complete');
  const running = count((status) => ACTIVE.has(status));
  const failed = count((status) => status === 'failed');
  const blocked = count((status) => status === 'blocked');
  return {
    total: tasks.length,
    complete,
    running,
    failed,
    blocked,
    waiting: tasks.length - complete - running - failed - blocked,
  };
}
