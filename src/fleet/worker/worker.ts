import { setTimeout as sleep } from 'node:timers/promises';
import { HotcellError, messageOf, toHotcellError } from '../../core/errors.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetSite } from '../fleet-site.ts';
import { TaskArtifacts } from '../logs/task-artifacts.ts';
import { toLogText } from '../logs/log-text.ts';
import type { WorkerLog } from '../logs/worker-log.ts';
import { workerBranch, workerWorktree, type FleetPaths } from '../names.ts';
import { backoffMs } from '../run/backoff.ts';
import type { Board, Claim } from '../run/board.ts';
import type { TakenChange } from '../run/recover.ts';
import { attemptTask, leavePlace, putAside, type Attempt, type AttemptResult } from './attempt-task.ts';
import { portOf, type AgentRun } from './agent-run.ts';
import { noteEscalation } from './escalations.ts';
import type { Place } from './place.ts';
import { watchPlace } from './watch-place.ts';

export interface WorkerParts {
  readonly worker: number;
  readonly paths: FleetPaths;
  readonly config: FleetConfig;
  readonly site: FleetSite;
  readonly board: Board;
  readonly log: WorkerLog;
  readonly agent: AgentRun;
  /** The fleet stops. */
  readonly signal: AbortSignal;
  /** A worktree and a cell; after a loss, anew. */
  openPlace(): Promise<Place>;
  /** What a commit of the task that was taken in makes of it; undefined: nothing was. */
  findTaken(task: string): Promise<TakenChange | undefined>;
  /** Whether the branch of the worker may move to this commit without losing anything. */
  canMoveTo(commit: string): Promise<boolean>;
}

/** One worker: takes one task after the other, and survives the loss of its cell. */
export class Worker {
  readonly #parts: WorkerParts;
  #place: Place | undefined;
  /** Why the cell is of no use any more. */
  #lost: string | undefined;
  #restarts = 0;
  /** Somebody wants this worker to end. */
  readonly #stop = new AbortController();

  constructor(parts: WorkerParts) {
    this.#parts = parts;
  }

  /** Starts the cell, again and again if it has to; false: it does not work. */
  async open(): Promise<boolean> {
    const { worker, board, config, log, signal, paths } = this.#parts;
    const { workers } = config;
    board.changeWorker(worker, {
      branch: workerBranch(paths.feature, worker),
      worktree_path: workerWorktree(paths, worker),
      port: portOf(config, worker),
      status: 'initializing',
      started_at: new Date().toISOString(),
      current_task: null,
    });
    for (let failures = 0; !signal.aborted;) {
      try {
        this.#place = await this.#parts.openPlace();
        this.#lost = undefined;
        this.#watch(this.#place);
        board.setAlive(worker, true);
        const { cell } = this.#place;
        const { id, name } = cell;
        log.onLine = (line) => cell.writeLog?.(toLogText(line));
        const ready = {
          status: 'ready' as const,
          ready_at: new Date().toISOString(),
          container_id: id,
          container_name: name,
          error: null,
        };
        board.changeWorker(worker, ready, 'worker_ready');
        log.info('worker ready', { event: 'worker_ready', data: { cell: id, name } });
        return true;
      } catch (error) {
        const { message, hint } = toHotcellError(error);
        failures++;
        log.error('worker start failed', { event: 'spawn_failed', data: { failures, error: message, hint } });
        if (failures > workers.spawn_retry_attempts) {
          board.changeWorker(worker, { status: 'crashed', error: `${message} (${hint})` }, 'worker_crashed');
          board.setAlive(worker, false);
          return false;
        }
        await pause(spawnPauseMs(config, failures), signal);
      }
    }
    return false;
  }

  /** Before a level: from here on the worker sees what all of them have done. */
  async startLevel(commit: string): Promise<void> {
    if (this.#place === undefined) return;
    try {
      if (!(await this.#parts.canMoveTo(commit))) return;
      await this.#place.git.moveTo(this.#place.runGit, commit);
    } catch (error) {
      await this.#crash(messageOf(error));
    }
  }

  /** Works until the level is over, or the worker is. */
  async work(level: number, commit: string): Promise<void> {
    const { worker, board, signal } = this.#parts;
    while (!signal.aborted) {
      const progress = board.progress(level);
      if (progress.kind !== 'open' || board.halted !== undefined) return;
      this.lookForStop();
      if (this.#stop.signal.aborted) return this.close();
      if (this.#lost !== undefined) await this.#crash(this.#lost);
      if (this.#place === undefined) {
        if (!(await this.#respawn(commit))) return;
        continue;
      }
      const claim = board.claim(level, worker);
      if (claim === undefined) {
        board.changeWorker(worker, { status: 'idle', current_task: null });
        await board.changed(progress.wakeAt, signal);
        continue;
      }
      await this.#perform(this.#place, claim);
    }
  }

  async #perform(place: Place, claim: Claim): Promise<void> {
    const { worker, board, log, signal, config } = this.#parts;
    const { task, attempt } = claim;
    const artifacts = new TaskArtifacts(this.#parts.paths, task.id);
    board.changeWorker(worker, { status: 'running', current_task: task.id });
    artifacts.record(
      log.info('task claimed', {
        task_id: task.id,
        phase: 'claim',
        event: 'task_claimed',
        data: { attempt },
      }),
    );
    board.begin(task.id);
    const started = performance.now();
    const stop = AbortSignal.any([signal, this.#stop.signal]);
    const order = { ...this.#parts, ...claim, place, artifacts, signal: stop };
    let result: AttemptResult;
    try {
      result = await attemptTask(order);
      this.#report(claim, result, performance.now() - started);
    } catch (error) {
      return this.#break(order, toHotcellError(error));
    }
    // The task has what it has; from here on it is the place that can be lost.
    if (result.kind === 'over-time') {
      return this.#crash(`its agent took longer than ${config.workers.timeout_minutes} minutes`);
    }
    try {
      await leavePlace(order, result);
    } catch (error) {
      await this.#crash(this.#lost ?? messageOf(error));
    }
    if (result.kind === 'done' && !config.logging.ephemeral_retain_on_success) artifacts.remove();
  }

  /** An attempt that came to no end: its cell is lost, it was stopped, or we are at fault. */
  async #break(order: Attempt, { code, message, hint }: HotcellError): Promise<void> {
    const { worker, board, log } = this.#parts;
    const { id } = order.task;
    const isTooLarge = code === 'WORKTREE_TOO_LARGE';
    const lost = isTooLarge ? message : (this.#lost ?? (LOSSES.has(code) ? message : undefined));
    log.error('attempt broken', {
      task_id: id,
      event: 'attempt_broken',
      data: { code, error: message, hint },
    });
    // SECURITY: what it has done to its worktree or to git is gone before others come, too.
    if (lost === undefined) await putAside(order).catch(() => {});
    const taken = await this.#parts.findTaken(id);
    if (taken !== undefined) board.settle(worker, id, taken);
    else if (order.signal.aborted) board.requeue(id, 'stopped');
    else if (lost !== undefined && !isTooLarge) board.lose(id, lost);
    else board.fail(id, isTooLarge ? `${message} (${code}: ${hint})` : message, 1);
    if (lost !== undefined && !order.signal.aborted) await this.#crash(lost);
  }

  #report({ task }: Claim, result: AttemptResult, durationMs: number): void {
    const { worker, board, log } = this.#parts;
    switch (result.kind) {
      case 'done':
        board.complete(task.id, worker, { ...result, durationMs });
        return;
      case 'checkpoint':
        board.changeWorker(worker, { status: 'checkpointing' });
        board.pause(task.id, worker, result);
        return;
      case 'blocked':
        log.warn('task blocked', {
          task_id: task.id,
          event: result.code === 4 ? 'escalation' : 'task_blocked',
          data: { reason: result.reason },
        });
        board.block(task.id, result.reason, result.code);
        if (result.code === 4)
          noteEscalation(this.#parts.paths, { task_id: task.id, worker_id: worker, message: result.reason });
        return;
      case 'signed-out':
        log.error('agent signed out', {
          task_id: task.id,
          event: 'agent_signed_out',
          data: { reason: result.reason },
        });
        board.requeue(task.id, result.reason);
        board.halt(new HotcellError('AGENT_SIGNED_OUT', result.reason));
        return;
      case 'failed':
        log.warn('task failed', { task_id: task.id, event: 'task_failed', data: { error: result.error } });
        board.fail(task.id, result.error, result.code);
        return;
      case 'stopped':
        board.requeue(task.id, 'stopped');
        return;
      case 'over-time':
        board.fail(task.id, result.error, 1);
    }
  }

  #watch(place: Place): void {
    const { board } = this.#parts;
    watchPlace(place, {
      ...this.#parts,
      onLost: (reason) => {
        if (this.#place !== place || this.#lost !== undefined) return;
        this.#lost = reason;
        // Whoever waits for one of its programs hears of it.
        void place[Symbol.asyncDispose]();
        board.wake();
      },
    });
  }

  async #crash(reason: string): Promise<void> {
    const { worker, board, log } = this.#parts;
    const place = this.#place;
    this.#place = undefined;
    this.#lost = undefined;
    await place?.[Symbol.asyncDispose]();
    log.error('worker crashed', { event: 'worker_crashed', data: { reason } });
    board.changeWorker(worker, { status: 'crashed', current_task: null, error: reason }, 'worker_crashed');
  }

  async #respawn(commit: string): Promise<boolean> {
    const { worker, board, config, log, signal } = this.#parts;
    const { workers } = config;
    this.#restarts++;
    if (this.#restarts > workers.max_respawn_attempts) {
      log.error('worker given up', { event: 'worker_given_up', data: { restarts: this.#restarts - 1 } });
      board.setAlive(worker, false);
      return false;
    }
    board.changeWorker(worker, { restarts: this.#restarts });
    await pause(spawnPauseMs(config, this.#restarts), signal);
    if (!(await this.open())) return false;
    await this.startLevel(commit);
    return true;
  }

  /** `hotcell fleet stop --worker` writes it to the state; called now and then. */
  lookForStop(): void {
    if (this.#parts.board.isStopRequested(this.#parts.worker)) this.#stop.abort();
  }

  /** Removes the cell; the worktree stays. */
  async close(): Promise<void> {
    const { worker, board } = this.#parts;
    const place = this.#place;
    if (place === undefined) return;
    this.#place = undefined;
    board.setAlive(worker, false);
    board.changeWorker(worker, { status: 'stopping' });
    await place[Symbol.asyncDispose]();
    board.changeWorker(
      worker,
      { status: 'stopped', current_task: null, container_id: null, stop_requested: false },
      'worker_stopped',
    );
  }
}

/** Errors that mean that the cell is gone, and not that the task is wrong. */
const LOSSES: ReadonlySet<HotcellError['code']> = new Set([
  'CELL_LOST',
  'DRIVER_UNAVAILABLE',
  'CELL_START_FAILED',
]);

function spawnPauseMs({ workers }: FleetConfig, failures: number): number {
  const backoff = {
    strategy: 'exponential',
    baseSeconds: workers.spawn_backoff_base_seconds,
    maxSeconds: workers.spawn_backoff_max_seconds,
  } as const;
  return backoffMs(backoff, failures, Math.random());
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}
