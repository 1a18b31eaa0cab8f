import { HotcellError } from '../../core/errors.ts';
import { cutMiddle } from '../../lib/cut-text.ts';
import type { FleetState, LevelState, TaskState, WorkerState } from '../fleet-state.ts';
import { appendEvent, type StateStore } from '../state/state-store.ts';
import type { Task, TaskGraph } from '../task-graph.ts';
import type { AgentFigures } from '../worker/agent-watch.ts';
import { backoffMs, type Backoff } from './backoff.ts';
import { claimable, progressOf, type LevelProgress } from './schedule.ts';
import { completeTask, pauseTask, toCommitFields, type Committed, type Done } from './task-changes.ts';

const LOSSES_FORGIVEN = 2;
/** Of a failure: how it begins, and the last words. */
const MOST_EVENT_BYTES = 500;

export interface BoardParts {
  readonly store: StateStore;
  readonly graph: TaskGraph;
  readonly backoff: Backoff;
  /** Attempts after the first one. */
  readonly retries: number;
  now(): number;
  random(): number;
  /** For people who watch. */
  onEvent(event: string, data: Readonly<Record<string, unknown>>): void;
}

export interface AgentNote {
  /** Of the task, all attempts together. */
  readonly figures: AgentFigures;
  /** What the agent does now. */
  readonly activity: string | null;
}

/** A task that somebody has taken. */
export interface Claim {
  readonly task: Task;
  readonly attempt: number;
  /** As it was before. */
  readonly state: TaskState;
}

/**
 * Who does what. Every change is made in the file, under its lock, and on what is there at that moment: `stop`, `retry` and
 * people with an editor have their say while the fleet runs.
 */
export class Board {
  readonly #parts: BoardParts;
  readonly #alive = new Set<number>();
  readonly #noted = new Set<string>();
  #waiting: (() => void)[] = [];
  #halted: HotcellError | undefined;

  constructor(parts: BoardParts) {
    this.#parts = parts;
  }

  #change<T>(change: (state: FleetState, time: string) => T): T {
    const time = new Date(this.#parts.now()).toISOString();
    return this.#parts.store.update((state) => change(state, time));
  }

  #note(state: FleetState, event: string, data: Record<string, unknown>): void {
    appendEvent(state, event, data);
    this.#parts.onEvent(event, data);
  }

  #changeTask(
    id: string,
    change: Partial<TaskState>,
    event: string,
    data: Record<string, unknown> = {},
  ): void {
    this.#change((state, time) => {
      const before = state.tasks[id] ?? { status: 'pending', retry_count: 0 };
      state.tasks[id] = { ...before, ...change, updated_at: time };
      this.#note(state, event, { task_id: id, ...data });
    });
    this.wake();
  }

  read(): FleetState {
    const state = this.#parts.store.read();
    if (state === undefined) throw new HotcellError('FLEET_UNKNOWN', 'the state of this feature is gone');
    return state;
  }

  /** Resolves when something may have changed, or at `at`. */
  async changed(at: number | undefined, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', finish);
        resolve();
      };
      const timer = at === undefined ? undefined : setTimeout(finish, Math.max(0, at - this.#parts.now()));
      this.#waiting.push(finish);
      signal.addEventListener('abort', finish, { once: true });
    });
  }

  /** Also for changes from outside: somebody has written to the file. */
  wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }

  progress(level: number): LevelProgress {
    return progressOf(this.#parts.graph, this.read(), level);
  }

  /** Takes the next task for a worker; undefined when there is none for it now. */
  claim(level: number, worker: number): Claim | undefined {
    return this.#change((state, time) => {
      const asked = { level, worker, now: this.#parts.now(), alive: this.#alive };
      const [task] = claimable(this.#parts.graph, state, asked);
      if (task === undefined) return undefined;
      const before = state.tasks[task.id];
      const attempt = (before?.retry_count ?? 0) + 1;
      const claimed: TaskState = {
        ...before,
        status: 'claimed',
        level,
        worker_id: worker,
        retry_count: before?.retry_count ?? 0,
        claimed_at: time,
        updated_at: time,
        next_retry_at: null,
        commit: null,
        exit_code: null,
      };
      state.tasks[task.id] = claimed;
      this.#note(state, 'task_claimed', { task_id: task.id, worker_id: worker, attempt });
      return { task, attempt, state: before ?? claimed };
    });
  }

  begin(id: string): void {
    const time = new Date(this.#parts.now()).toISOString();
    this.#changeTask(id, { status: 'in_progress', started_at: time }, 'task_started');
  }

  verifying(id: string): void {
    this.#changeTask(id, { status: 'verifying' }, 'verification_started');
  }

  /**
   * Before the branch has it, so that whatever happens in between is seen afterwards: `findTaken`. `pausedFor` is what the
   * agent said if it wants to be called again.
   */
  willTake(id: string, taken: Committed, pausedFor?: string): void {
    const end = pausedFor === undefined ? { exit_code: 0 } : { exit_code: 2, said: pausedFor };
    this.#change((state) => {
      const task = state.tasks[id];
      if (task !== undefined) Object.assign(task, toCommitFields(taken), end);
    });
  }

  complete(id: string, worker: number, done: Done): void {
    this.settle(worker, id, (state, time) => completeTask(state, id, { ...done, worker, time }));
  }

  /** Its commits were taken in: it is complete, or goes on from there. */
  settle(worker: number, id: string, change: (state: FleetState, time: string) => void): void {
    const task = this.#change((state, time) => {
      change(state, time);
      const [after, before] = [state.tasks[id], state.workers[String(worker)]];
      if (after?.status !== 'complete' || before === undefined) return after;
      before.tasks_completed++;
      before.last_task_completed_at = time;
      return after;
    });
    const event = task?.status === 'complete' ? 'task_complete' : 'worker_checkpoint';
    const { changed_files: files = [] } = task ?? {};
    this.#parts.onEvent(event, { task_id: id, worker_id: worker, files: files.length });
    this.wake();
  }

  /** One attempt failed: it is tried again later, or not at all. */
  fail(id: string, error: string, exitCode: number): void {
    this.#change((state, time) => {
      const before = state.tasks[id];
      const failures = (before?.retry_count ?? 0) + 1;
      const status = failures > this.#parts.retries ? 'failed' : 'waiting_retry';
      const delay = backoffMs(this.#parts.backoff, failures, this.#parts.random());
      state.tasks[id] = {
        ...before,
        status,
        retry_count: failures,
        error,
        exit_code: exitCode,
        last_retry_at: time,
        next_retry_at: status === 'failed' ? null : new Date(this.#parts.now() + delay).toISOString(),
        updated_at: time,
      };
      this.#note(state, status === 'failed' ? 'task_failed' : 'task_retry_scheduled', {
        task_id: id,
        attempt: failures,
        error: cutMiddle(error, MOST_EVENT_BYTES, () => ' […] ').text,
      });
    });
    this.wake();
  }

  /** A person has to look at it: the agent cannot go on (3), or asks for a decision (4). */
  block(id: string, reason: string, exitCode: 3 | 4): void {
    const event = exitCode === 4 ? 'escalation' : 'task_blocked';
    const said = { error: reason, said: reason, answer: null };
    this.#changeTask(id, { status: 'blocked', exit_code: exitCode, ...said }, event, {
      reason: reason.slice(0, 500),
    });
  }

  /** What there is so far is committed; the same worker goes on with it. */
  pause(id: string, worker: number, put: { readonly commit: string; readonly reason: string }): void {
    this.settle(worker, id, (state, time) => pauseTask(state, id, { ...put, worker, time }));
  }

  /** Through no fault of its own. */
  requeue(id: string, reason: string): void {
    this.#changeTask(id, { status: 'pending', error: reason, worker_id: null }, 'task_requeued', { reason });
  }

  /** Its worker was lost. Now and then that happens; a task that loses one worker after the other is at fault itself. */
  lose(id: string, reason: string): void {
    const losses = (this.read().tasks[id]?.losses ?? 0) + 1;
    this.#change((state) => {
      const task = state.tasks[id];
      if (task !== undefined) task.losses = losses;
    });
    if (losses > LOSSES_FORGIVEN) this.fail(id, `${reason}, for the ${losses}. time`, 1);
    else this.requeue(id, reason);
  }

  /** Nothing can go on before a person has done something; what is under way comes to its end. */
  halt(why: HotcellError): void {
    this.#halted ??= why;
    this.wake();
  }

  get halted(): HotcellError | undefined {
    return this.#halted;
  }

  /** Now and then while an agent works, and at its end. */
  noteAgent(worker: number, id: string, { figures, activity }: AgentNote): void {
    this.#change((state) => {
      const [task, at] = [state.tasks[id], state.workers[String(worker)]];
      if (task !== undefined) task.agent = { ...figures };
      if (at !== undefined) at.activity = activity;
    });
  }

  setAlive(worker: number, isAlive: boolean): void {
    if (isAlive) this.#alive.add(worker);
    else this.#alive.delete(worker);
    this.wake();
  }

  changeWorker(worker: number, change: Partial<WorkerState>, event?: string): void {
    this.#change((state) => {
      const before = state.workers[String(worker)] ?? {
        worker_id: worker,
        status: 'initializing',
        tasks_completed: 0,
        restarts: 0,
      };
      state.workers[String(worker)] = { ...before, ...change };
      if (event !== undefined)
        this.#note(state, event, { worker_id: worker, ...(change.error ? { error: change.error } : {}) });
    });
  }

  isStopRequested(worker: number): boolean {
    return this.read().workers[String(worker)]?.stop_requested === true;
  }

  changeLevel(
    level: number,
    change: Partial<LevelState>,
    event: string,
    data: Record<string, unknown> = {},
  ): void {
    this.#change((state, time) => {
      const before = state.levels[String(level)] ?? { status: 'pending' };
      state.levels[String(level)] = { ...before, ...change, updated_at: time };
      if (change.status === 'running') state.current_level = level;
      this.#note(state, event, { level, ...data });
    });
  }

  /** What would be the same for every task; says whether it is news. */
  noteOnce(event: string, data: Record<string, unknown>): boolean {
    if (this.#noted.has(event)) return false;
    this.#noted.add(event);
    this.#change((state) => this.#note(state, event, data));
    return true;
  }

  /** The run ends, or goes on: what `status` says of it as a whole. */
  setRun(change: Partial<Pick<FleetState, 'paused' | 'error' | 'finished_at'>>, event: string): void {
    this.#change((state) => {
      Object.assign(state, change);
      this.#note(state, event, change.error ? { error: change.error } : {});
    });
  }
}
