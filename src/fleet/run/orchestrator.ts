import { HotcellError, messageOf } from '../../core/errors.ts';
import type { LevelState } from '../fleet-state.ts';
import { findAuthor } from '../git/author.ts';
import { isAncestor, requireCommit } from '../git/refs.ts';
import { noteLeading } from '../state/led-time.ts';
import { WorkerLog } from '../logs/worker-log.ts';
import { featureBranch, workerBranch } from '../names.ts';
import { Worker } from '../worker/worker.ts';
import { Board } from './board.ts';
import type { FleetOutcome, FleetRun } from './fleet-run.ts';
import { runChecks, type CheckResult } from './checks.ts';
import { mergeLevel } from './merge-level.ts';
import { CHECKS_NUMBER, FleetPlaces } from './places.ts';
import { findTaken } from './recover.ts';
import { levelsOf } from './schedule.ts';

/** How soon others are heard who write to the state: `stop --worker`, `retry`. */
const LOOK_MS = 1000;
/** The most that is lost of the time of a run when its orchestrator is killed. */
const SIGN_MS = 10_000;
const WORDS_KEPT = 1000;

/**
 * Leads a fleet level by level. Everything that it must not forget is in the state or in git: killed at any line, the next
 * one goes on from there.
 */
export class Orchestrator {
  readonly #run: FleetRun;
  readonly #board: Board;
  readonly #places: FleetPlaces;
  #workers: Worker[] = [];

  constructor(run: FleetRun) {
    this.#run = run;
    const { store, graph, config } = run;
    const { workers } = config;
    this.#board = new Board({
      store,
      graph,
      backoff: {
        strategy: workers.backoff_strategy,
        baseSeconds: workers.backoff_base_seconds,
        maxSeconds: workers.backoff_max_seconds,
      },
      retries: workers.retry_attempts,
      now: () => Date.now(),
      random: () => Math.random(),
      onEvent: (event, data) => run.onEvent(event, data),
    });
    this.#places = new FleetPlaces(run);
  }

  /** Precondition: `beginState` has been called, and nobody else leads this feature. */
  async lead(): Promise<FleetOutcome> {
    const { store } = this.#run;
    const look = setInterval(() => {
      for (const worker of this.#workers) worker.lookForStop();
      this.#board.wake();
    }, LOOK_MS);
    const sign = setInterval(() => noteLeading(store), SIGN_MS);
    try {
      const outcome = await this.#leadLevels();
      if (outcome.kind === 'complete') await this.#finish();
      return outcome;
    } catch (error) {
      if (this.#run.signal.aborted) return { kind: 'stopped' };
      const failure =
        error instanceof HotcellError
          ? error
          : new HotcellError('INTERNAL', messageOf(error), { cause: error });
      return this.#pause(failure);
    } finally {
      clearInterval(look);
      await Promise.all(this.#workers.map((worker) => worker.close()));
      clearInterval(sign);
      noteLeading(store);
    }
  }

  async #leadLevels(): Promise<FleetOutcome> {
    const { graph, signal, lastLevel, git, paths } = this.#run;
    const open = levelsOf(graph).filter((level) => this.#levelState(level)?.status !== 'complete');
    if (open.length > 0) await this.#openWorkers();
    for (const level of open) {
      if (lastLevel !== undefined && level > lastLevel) return { kind: 'level-complete', level: lastLevel };
      const start = await requireCommit(git, featureBranch(paths.feature));
      const outcome =
        (await this.#workLevel(level, start)) ??
        (await this.#mergeLevel(level)) ??
        (await this.#judgeLevel(level));
      if (signal.aborted) return { kind: 'stopped' };
      if (outcome !== undefined) return outcome;
    }
    return { kind: 'complete' };
  }

  #levelState(level: number): LevelState | undefined {
    return this.#board.read().levels[String(level)];
  }

  async #openWorkers(): Promise<void> {
    const { workers: count, git, paths, signal } = this.#run;
    this.#workers = Array.from({ length: count }, (_, worker) => {
      const branch = workerBranch(paths.feature, worker);
      return new Worker({
        ...this.#run,
        worker,
        board: this.#board,
        log: this.#openLog(worker),
        openPlace: () => this.#places.openWorker(worker),
        findTaken: (task) => findTaken(git, paths.feature, task, this.#board.read().tasks[task]),
        canMoveTo: (commit) => isAncestor(git, branch, commit),
      });
    });
    const isOpen = await Promise.all(this.#workers.map((worker) => worker.open()));
    if (isOpen.some(Boolean) || signal.aborted) return;
    const problems = Object.values(this.#board.read().workers).map(({ error }) => error ?? '');
    throw new HotcellError('CELL_START_FAILED', `no worker could be started: ${problems[0] ?? ''}`);
  }

  #openLog(worker: number, name?: string): WorkerLog {
    const { level, max_log_size_mb: megabytes } = this.#run.config.logging;
    const options = { level, maxBytes: megabytes * 1024 ** 2, ...(name === undefined ? {} : { name }) };
    return new WorkerLog(this.#run.paths, worker, options);
  }

  /** Undefined: every task of the level is complete. */
  async #workLevel(level: number, start: string): Promise<FleetOutcome | undefined> {
    const { signal } = this.#run;
    if (this.#board.progress(level).kind === 'complete') return undefined;
    const running = {
      status: 'running',
      merge_status: 'waiting',
      started_at: new Date().toISOString(),
    } as const;
    this.#board.changeLevel(level, running, 'level_started');
    await Promise.all(
      this.#workers.map(async (worker) => {
        await worker.startLevel(start);
        await worker.work(level, start);
      }),
    );
    if (signal.aborted) return { kind: 'stopped' };
    const progress = this.#board.progress(level);
    if (progress.kind === 'complete') return undefined;
    if (this.#board.halted !== undefined) return this.#pause(this.#board.halted);
    if (progress.kind === 'open') return this.#pause(toAbandoned(level));
    const { feature } = this.#run.paths;
    const tasks = this.#board.read().tasks;
    const list = progress.tasks.map(
      (id) => `${id} (${tasks[id]?.status ?? ''}: ${firstLine(tasks[id]?.error)})`,
    );
    this.#board.changeLevel(level, { status: 'failed' }, 'level_failed', { tasks: progress.tasks });
    return this.#pause(
      new HotcellError('TASKS_FAILED', `level ${level} cannot be completed: ${list.join('; ')}`, {
        hint: `Look: hotcell fleet logs --task ${progress.tasks[0] ?? ''} --artifacts. Then hotcell fleet retry --all-failed --feature ${feature}, and hotcell fleet resume --feature ${feature}.`,
      }),
    );
  }

  async #mergeLevel(level: number): Promise<FleetOutcome | undefined> {
    const { git, paths } = this.#run;
    this.#board.changeLevel(
      level,
      { status: 'merging', merge_status: 'merging', merge_details: null },
      'merge_started',
    );
    const merged = await mergeLevel(git, {
      feature: paths.feature,
      level,
      author: await findAuthor(git, undefined),
    });
    if (merged.kind === 'merged') {
      this.#board.changeLevel(
        level,
        { merge_status: 'validating', merge_commit: merged.commit },
        'level_merged',
        {
          commit: merged.commit,
        },
      );
      return undefined;
    }
    const { branch, files, instructions } = merged;
    const details = { branch, files, instructions };
    this.#board.changeLevel(
      level,
      { status: 'conflict', merge_status: 'conflict', merge_details: details },
      'merge_conflict',
      { branch, files },
    );
    return this.#pause(
      new HotcellError('MERGE_CONFLICT', `${branch} does not merge: ${files.slice(0, 20).join(', ')}`, {
        hint: instructions.join('\n'),
      }),
    );
  }

  /** The checks, and then the level is complete. */
  async #judgeLevel(level: number): Promise<FleetOutcome | undefined> {
    const { config, paths, signal } = this.#run;
    const commit = this.#levelState(level)?.merge_commit ?? '';
    const results = await runChecks({
      checks: config.quality_gates,
      folder: `${paths.checkResults}/level-${level}`,
      commit,
      signal,
      openPlace: () => this.#places.openChecks(commit),
      onResult: (result) => this.#noteCheck(level, result),
    });
    await this.#places.closeChecks();
    if (signal.aborted) return { kind: 'stopped' };
    const failed = results.find(({ required, result }) => required && result !== 'pass');
    if (failed === undefined) {
      const complete = {
        status: 'complete',
        merge_status: 'complete',
        completed_at: new Date().toISOString(),
      } as const;
      this.#board.changeLevel(level, complete, 'level_complete', { commit });
      return undefined;
    }
    const { check, result, output } = failed;
    const branch = featureBranch(paths.feature);
    const instructions = [
      `Look: ${paths.checkResults}/level-${level}/${check}.json`,
      `Mend it on the branch ${branch} (for example: git worktree add ../mend ${branch}), commit, and remove that worktree.`,
      `Then: hotcell fleet resume --feature ${paths.feature}`,
    ];
    this.#board.changeLevel(
      level,
      { status: 'failed', merge_status: 'failed', merge_details: { gate: check, instructions } },
      'gate_failed',
      { gate: check, result },
    );
    return this.#pause(
      new HotcellError(
        'TASKS_FAILED',
        `check ${check} did not pass after level ${level} (${result}): ${output.slice(-WORDS_KEPT)}`,
        {
          hint: instructions.join('\n'),
        },
      ),
    );
  }

  #noteCheck(level: number, { check, result, required, durationMs }: CheckResult): void {
    const event = `gate_${result}`;
    const data = { level, gate: check, required, duration_ms: durationMs };
    this.#run.store.note(event, data);
    this.#run.onEvent(event, data);
    const weight = result === 'pass' || result === 'skip' ? 'info' : required ? 'error' : 'warn';
    const facts = {
      phase: 'verify',
      event,
      duration_ms: durationMs,
      data: { level, check, result },
    } as const;
    this.#openLog(CHECKS_NUMBER, 'checks').write(weight, 'check ended', facts);
  }

  #pause(error: HotcellError): FleetOutcome {
    this.#board.setRun({ paused: true, error: error.message }, 'paused_for_intervention');
    return { kind: 'paused', error };
  }

  /** Cells first, then what they worked in. Branches and logs stay. */
  async #finish(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.close()));
    await this.#places.removeAll();
    this.#board.setRun(
      { finished_at: new Date().toISOString(), paused: false, error: null },
      'rush_complete',
    );
  }
}

function toAbandoned(level: number): HotcellError {
  return new HotcellError('TASKS_FAILED', `all workers are gone, and level ${level} has open tasks`, {
    hint: 'hotcell fleet logs tells why. hotcell fleet resume goes on with new workers.',
  });
}

function firstLine(text: string | null | undefined): string {
  return (text ?? '').split('\n')[0]?.slice(0, 200) ?? '';
}
