import { readOutcome, type EndBounds } from '../cells/read-outcome.ts';
import { HotcellError, toCancelError, toHotcellError } from '../core/errors.ts';
import type { Language, LanguageTable } from '../core/language.ts';
import type { Limits } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import type { HotCell } from '../pool/hot-cell.ts';
import type { HotPool, Taken } from '../pool/hot-pool.ts';
import { BOOTSTRAP_FAILURE, encodeJobFrame } from '../pool/job-frame.ts';
import { Admission } from './admission.ts';
import { toEndMessage, toKeptOutput } from './describe-end.ts';
import type { LanguageStatus, OutputListener, RunRequest, RunResult, Runs } from './run.ts';
import type { ReadyPackages, RunPackages } from './run-packages.ts';
import { supervise, type Supervised } from './supervise.ts';

export interface RunsOptions {
  readonly pool: HotPool;
  readonly languages: LanguageTable;
  readonly limits: Limits;
  readonly ceilings: { readonly wallTimeMs: number; readonly memoryBytes: number };
  readonly keptBytes: number;
  readonly running: number;
  readonly queue: number;
  /** Undefined: nothing is installed for runs. */
  readonly packages?: RunPackages;
  /** Aborted when the server stops: running executions end. */
  readonly stopping: AbortSignal;
  readonly log: Log;
  /** What the cells of a language are made from, for receipts. */
  imageName(language: Language): string;
  /** Told about every finished run. */
  onRun(result: RunResult): void;
}

/** Cells that died while they waited may be met several times in a row. */
const ATTEMPTS = 3;
/** What a booted interpreter needs to do anything at all. */
const LEAST_ROOM_BYTES = 2 * 1024 * 1024;

/** The one-shot use case: one piece of code in, a full diagnosis out. */
export class OneShotRuns implements Runs {
  readonly #options: RunsOptions;
  readonly #admission: Admission;

  constructor(options: RunsOptions) {
    this.#options = options;
    this.#admission = new Admission(options);
  }

  get load(): { running: number; waiting: number } {
    return { running: this.#admission.inside, waiting: this.#admission.waiting };
  }

  languages(): LanguageStatus[] {
    const { languages, pool } = this.#options;
    return Object.entries(languages).map(([name, entry]) => {
      const { problem, state } = pool.status(name);
      return {
        name,
        extension: entry.extension,
        imageName: this.#options.imageName(entry),
        available: problem === undefined,
        problem,
        state,
      };
    });
  }

  async run(
    request: RunRequest,
    options: { signal: AbortSignal; onOutput?: OutputListener },
  ): Promise<RunResult> {
    const language = this.requireLanguage(request.language);
    const bounds = this.#toBounds(request);
    const { stopping } = this.#options;
    const signal = AbortSignal.any([options.signal, stopping]);
    if (signal.aborted) throw toCancelError(signal);
    return this.#admission.run(async () => {
      const preparing = this.#options.packages?.prepare(request, signal);
      const packages = preparing === undefined ? undefined : await preparing;
      let streamed = false;
      const onOutput: OutputListener = (stream, bytes) => {
        streamed = options.onOutput !== undefined;
        options.onOutput?.(stream, bytes);
      };
      for (let attempt = 1; ; attempt++) {
        const mayRetry = (): boolean => attempt < ATTEMPTS && !streamed && !signal.aborted;
        try {
          // What was lost in a shared cell may be a neighbour's doing: the second try is without neighbours.
          const own = attempt > 1 || packages !== undefined || needsOwnCell(request);
          return await this.#runOnce({
            request,
            language,
            bounds,
            signal,
            onOutput,
            mayRetry,
            own,
            packages,
          });
        } catch (error) {
          // A lost cell has left no trace outside itself, so running again is safe as long as nobody saw output.
          const { code, message } = toHotcellError(error);
          const lost = code === 'CELL_LOST' || code === 'CELL_START_FAILED';
          if (!lost || !mayRetry()) throw error;
          this.#options.log.warn({ language: request.language, error: message }, 'cell lost');
        }
      }
    }, signal);
  }

  requireLanguage(name: string): Language {
    const language = Object.hasOwn(this.#options.languages, name) ? this.#options.languages[name] : undefined;
    if (language === undefined) {
      const known = Object.keys(this.#options.languages).join(', ');
      throw new HotcellError(
        'LANGUAGE_UNKNOWN',
        `there is no language ${JSON.stringify(name)}; known: ${known}`,
        {
          field: 'language',
        },
      );
    }
    return language;
  }

  #toBounds(request: RunRequest): EndBounds {
    const { ceilings, limits } = this.#options;
    const wallTimeMs = request.timeoutMs ?? limits.wallTimeMs;
    const memoryBytes = request.memoryBytes ?? limits.memoryBytes;
    if (request.timeoutMs !== undefined && wallTimeMs > ceilings.wallTimeMs) {
      throw new HotcellError(
        'LIMIT_TOO_HIGH',
        `timeout_ms: at most ${ceilings.wallTimeMs} here, got ${wallTimeMs}`,
        {
          field: 'timeout_ms',
        },
      );
    }
    if (request.memoryBytes !== undefined && memoryBytes > ceilings.memoryBytes) {
      const megabytes = (bytes: number): number => Math.floor(bytes / 1024 / 1024);
      throw new HotcellError(
        'LIMIT_TOO_HIGH',
        `memory_mb: at most ${megabytes(ceilings.memoryBytes)} here, got ${megabytes(memoryBytes)}`,
        { field: 'memory_mb' },
      );
    }
    return { wallTimeMs, memoryBytes, outputBytes: limits.outputBytes };
  }

  async #runOnce(run: {
    request: RunRequest;
    language: Language;
    bounds: EndBounds;
    signal: AbortSignal;
    onOutput: OutputListener;
    mayRetry: () => boolean;
    own: boolean;
    packages: ReadyPackages | undefined;
  }): Promise<RunResult> {
    const { pool, keptBytes, limits } = this.#options;
    const { request, bounds, packages } = run;
    const { memoryBytes } = bounds;
    const taken = run.own
      ? await pool.takeOwn(request.language, { memoryBytes, folders: packages?.folders ?? [] }, run.signal)
      : await pool.take(request.language, run.signal);
    const { cell } = taken.hot;
    try {
      if (bounds.memoryBytes !== limits.memoryBytes) requireRoom(taken.hot, bounds.memoryBytes);
      if (bounds.memoryBytes !== taken.memoryBytes) await cell.limitMemory?.(bounds.memoryBytes);
      const end = await supervise(taken.hot, {
        input: encodeJobFrame({ ...request, env: { ...request.env, ...packages?.env } }),
        stdin: request.stdin,
        wallTimeMs: bounds.wallTimeMs,
        outputBytes: bounds.outputBytes,
        keptBytes,
        signal: run.signal,
        onOutput: run.onOutput,
      });
      if (end.outcome.kind === 'cancelled') throw toCancelError(run.signal);
      // Believed only while there is another try: a program could say the same of itself.
      if (run.mayRetry() && isBootstrapFailure(end))
        throw new HotcellError('CELL_LOST', `${cell.name} was unusable`);
      const result = this.#toResult(run, taken, end);
      this.#report(result);
      return result;
    } catch (error) {
      if (toHotcellError(error).code === 'CELL_LOST') taken.hot.retire();
      throw error;
    } finally {
      // After the reply is on its way: booting the next cell must not compete with it.
      setImmediate(() => taken.release());
      // Single use: the caller does not wait for the remains to be cleared away.
      taken.hot.dispose().catch(() => {});
    }
  }

  #toResult(
    run: {
      request: RunRequest;
      language: Language;
      bounds: EndBounds;
      packages: ReadyPackages | undefined;
    },
    taken: Taken,
    end: Supervised,
  ): RunResult {
    const { cell, filePath, bootUsage } = taken.hot;
    const { outcome, usage } = end;
    const { keptBytes } = this.#options;
    return {
      outcome,
      exitCode: readOutcome(outcome).exitCode,
      limitHit: outcome.kind === 'limit' ? outcome.limit : usage.reached[0],
      stdout: toKeptOutput(end.stdout, keptBytes, undefined),
      stderr: toKeptOutput(end.stderr, keptBytes, toEndMessage(outcome, run.bounds)),
      wallTimeMs: end.wallTimeMs,
      cpuTimeMs: Math.max(0, usage.cpuMs - bootUsage.cpuMs),
      peakMemoryBytes: usage.peakMemoryBytes,
      cellId: cell.id,
      language: run.request.language,
      imageName: this.#options.imageName(run.language),
      filePath,
      isolation: cell.isolation,
      warm: taken.warm,
      packages: run.packages?.packages,
    };
  }

  #report(result: RunResult): void {
    const { outcome, exitCode, cellId: cell, language, limitHit, warm } = result;
    const wallTimeMs = Math.round(result.wallTimeMs * 10) / 10;
    this.#options.log.info(
      { cell, language, outcome: outcome.kind, exitCode, limitHit, wallTimeMs, warm },
      'run ended',
    );
    this.#options.onRun(result);
  }
}

/** Files beside the code would meet those of others, and memory is granted to a cell, not to a run in it. */
function needsOwnCell(request: RunRequest): boolean {
  return request.files.length > 0 || request.memoryBytes !== undefined;
}

/** A limit below what the interpreter holds already could only kill it; say so instead. */
function requireRoom({ bootUsage }: HotCell, bytes: number): void {
  const held = bootUsage.peakMemoryBytes ?? 0;
  if (bytes >= held + LEAST_ROOM_BYTES) return;
  const least = Math.ceil((held + LEAST_ROOM_BYTES) / 1024 / 1024);
  throw new HotcellError('LIMIT_TOO_LOW', `memory_mb: at least ${least} for this language`, {
    field: 'memory_mb',
  });
}

function isBootstrapFailure({ outcome, stdout, stderr }: Supervised): boolean {
  const { exitCode, words } = BOOTSTRAP_FAILURE;
  if (outcome.kind !== 'exited' || outcome.code !== exitCode || stdout.total > 0) return false;
  return stderr.text().includes(words);
}
