import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { HotcellError, toCancelError } from '../core/errors.ts';
import { AWAKE } from './fleet-state.ts';
import type { FleetPaths } from './names.ts';
import { requeueActive } from './run/task-changes.ts';
import { isFileLockHeld } from './state/file-lock.ts';
import { findOrchestrator, takeOrchestrator, type OrchestratorRecord } from './state/orchestrator-lock.ts';
import { appendEvent, type StateStore } from './state/state-store.ts';

const LOOK_EVERY_MS = 100;

export interface StopParts {
  readonly paths: FleetPaths;
  readonly store: StateStore;
  /** Removes the cells of dead orchestrators and names them. */
  reclaim(): Promise<string[]>;
}

export interface StopWish {
  /** SIGKILL at once instead of SIGTERM. */
  readonly force: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  onProgress(text: string): void;
}

export interface StopResult {
  /** Whom we ended; undefined when nobody was there. */
  readonly pid: number | undefined;
  /** Tasks that somebody was at. They can be taken again. */
  readonly requeued: readonly string[];
  readonly removedCells: readonly string[];
}

/** Ends the orchestrator, or tidies up after one that is dead. Nothing that was committed is lost. */
export async function stopFleet(parts: StopParts, wish: StopWish): Promise<StopResult> {
  const other = findOrchestrator(parts.paths);
  if (other === undefined) parts.store.require();
  else await endOrchestrator(parts.paths, other, wish);
  // From here on nobody else works on the feature: `resume` would be refused until this is done.
  using hold = takeOrchestrator(parts.paths, { mode: 'stop' });
  const requeued = parts.store.read() === undefined ? [] : settleState(parts.store, hold.record.started_at);
  const removedCells = await parts.reclaim();
  return { pid: other?.pid, requeued, removedCells };
}

async function endOrchestrator(paths: FleetPaths, other: OrchestratorRecord, wish: StopWish): Promise<void> {
  const { pid } = other;
  signalProcess(other, wish.force ? 'SIGKILL' : 'SIGTERM');
  const begin = Date.now();
  for (let said = 0; isFileLockHeld(paths.orchestratorLock);) {
    const passed = Date.now() - begin;
    if (passed > wish.timeoutMs) {
      throw new HotcellError('FLEET_BUSY', `process ${pid} has not ended within ${wish.timeoutMs / 1000} s`, {
        hint: `It was told to end and may yet do so; hotcell fleet stop --feature ${paths.feature} --force ends it at once.`,
      });
    }
    if (Math.floor(passed / 1000) >= said) {
      said = Math.floor(passed / 1000) + 1;
      wish.onProgress(`waits for process ${pid} and its workers to end, ${said - 1} s`);
    }
    await sleep(LOOK_EVERY_MS, undefined, { signal: wish.signal }).catch(() => {
      throw toCancelError(wish.signal);
    });
  }
}

function signalProcess({ pid, host }: OrchestratorRecord, name: 'SIGKILL' | 'SIGTERM'): void {
  if (typeof host === 'string' && host !== hostname()) {
    throw new HotcellError('FLEET_BUSY', `process ${pid} of ${host} works on this feature`, {
      hint: `Stop it there.`,
    });
  }
  try {
    process.kill(pid, name);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    // It ended by itself meanwhile.
    if (code === 'ESRCH') return;
    throw new HotcellError('FLEET_BUSY', `process ${pid} belongs to another user`, {
      hint: 'Stop it as that user.',
      cause: error,
    });
  }
}

/** What an orchestrator does itself, unless it was killed. */
function settleState(store: StateStore, time: string): string[] {
  return store.update((state) => {
    const requeued = requeueActive(state, time);
    const awake = Object.values(state.workers).filter(({ status }) => AWAKE.has(status));
    for (const worker of awake) Object.assign(worker, { status: 'stopped', current_task: null });
    for (const worker of Object.values(state.workers)) {
      if (worker.stop_requested !== undefined) worker.stop_requested = false;
    }
    if (requeued.length > 0 || awake.length > 0)
      appendEvent(state, 'fleet_stopped', {
        tasks: requeued,
        workers: awake.map((worker) => worker.worker_id),
      });
    return requeued;
  });
}

/** Asks a living orchestrator to end one worker; resolves with true when that is done, with false when it takes longer. */
export async function stopWorker(
  { paths, store }: Pick<StopParts, 'paths' | 'store'>,
  worker: number,
  wish: Pick<StopWish, 'timeoutMs' | 'signal'>,
): Promise<boolean> {
  if (findOrchestrator(paths) === undefined) {
    throw new HotcellError(
      'FLEET_UNKNOWN',
      `no orchestrator works on feature ${paths.feature}, so no worker runs`,
      {
        hint: `hotcell fleet stop --feature ${paths.feature} tidies up what is left.`,
      },
    );
  }
  store.update((state) => {
    const known = state.workers[String(worker)];
    if (known === undefined) {
      const names = Object.keys(state.workers).join(', ') || 'none';
      throw new HotcellError('FLEET_UNKNOWN', `feature ${paths.feature} has no worker ${worker}`, {
        hint: `Its workers: ${names}.`,
      });
    }
    known.stop_requested = true;
    appendEvent(state, 'worker_stop_requested', { worker_id: worker });
  });
  const deadline = Date.now() + wish.timeoutMs;
  while (Date.now() < deadline) {
    const status = store.read()?.workers[String(worker)]?.status;
    if (status === undefined || !AWAKE.has(status)) return true;
    if (findOrchestrator(paths) === undefined) return true;
    await sleep(LOOK_EVERY_MS, undefined, { signal: wish.signal }).catch(() => {
      throw toCancelError(wish.signal);
    });
  }
  return false;
}
