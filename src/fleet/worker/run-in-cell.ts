import type { Cell } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { Exec, ExecOutcome, ExecRequest } from '../../core/exec.ts';
import { HeadTail } from '../../lib/head-tail.ts';

/** After being asked to end, a program has this long. */
const GRACE_MS = 10_000;
const KEPT_BYTES = 64 * 1024;

export interface RunOptions {
  readonly input?: Uint8Array;
  /** Longest time; then it is asked to end, and ended. */
  readonly timeoutMs?: number;
  /** Somebody wants it to end. */
  readonly signal?: AbortSignal;
  readonly graceMs?: number;
  /** Of each stream so much is kept, the beginning and the end. */
  readonly keptBytes?: number;
  onOutput?(stream: 'stdout' | 'stderr', bytes: Uint8Array): void;
}

export interface RunResult {
  readonly outcome: ExecOutcome;
  /** As shells write it: 128 and the signal for one that was killed. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  readonly stopped: boolean;
}

/** Runs one program in a cell to its end. Throws when the cell is lost. */
export async function runInCell(
  cell: Cell,
  request: ExecRequest,
  options: RunOptions = {},
): Promise<RunResult> {
  options.signal?.throwIfAborted();
  const exec = await cell.exec(request);
  if (options.input !== undefined) exec.write(options.input);
  exec.closeStdin();
  using end = new End(exec, options);
  const stdout = new Kept(options.keptBytes ?? KEPT_BYTES);
  const stderr = new Kept(options.keptBytes ?? KEPT_BYTES);
  for await (const event of exec.events) {
    if (event.type === 'exit') {
      exec.forget();
      const { outcome } = event;
      const why = { timedOut: end.reason === 'timeout', stopped: end.reason === 'stop' };
      return { outcome, code: toCode(outcome), stdout: stdout.text(), stderr: stderr.text(), ...why };
    }
    (event.type === 'stdout' ? stdout : stderr).push(event.bytes);
    options.onOutput?.(event.type, event.bytes);
  }
  throw new HotcellError('CELL_LOST', `cell ${cell.name} ended before its program did`);
}

class Kept {
  readonly #bytes: HeadTail;
  #total = 0;

  constructor(limit: number) {
    this.#bytes = new HeadTail(limit);
  }

  push(bytes: Uint8Array): void {
    this.#total += bytes.length;
    this.#bytes.push(bytes);
  }

  text(): string {
    return this.#bytes.text(this.#total).text;
  }
}

/** Ends a program that takes too long, or that nobody wants any more: SIGTERM, and SIGKILL after a grace. */
class End implements Disposable {
  readonly #exec: Exec;
  readonly #options: RunOptions;
  readonly #onAbort = (): void => this.#begin('stop');
  #timers: NodeJS.Timeout[] = [];
  reason: 'timeout' | 'stop' | undefined;

  constructor(exec: Exec, options: RunOptions) {
    this.#exec = exec;
    this.#options = options;
    options.signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal?.aborted === true) this.#begin('stop');
    if (options.timeoutMs !== undefined)
      this.#timers.push(setTimeout(() => this.#begin('timeout'), options.timeoutMs));
  }

  #begin(reason: 'timeout' | 'stop'): void {
    if (this.reason !== undefined) return;
    this.reason = reason;
    this.#exec.terminate();
    const kill = (): void => {
      // A cell that cannot even be asked is lost, and whoever reads the events is told.
      this.#exec.kill(reason === 'timeout' ? 'wallTimeMs' : 'cancelled').catch(() => {});
    };
    this.#timers.push(setTimeout(kill, this.#options.graceMs ?? GRACE_MS));
  }

  [Symbol.dispose](): void {
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers = [];
  }
}

const SIGNAL_BASE = 128;
const KILLED = 137;

function toCode(outcome: ExecOutcome): number {
  if (outcome.kind === 'exited') return outcome.code;
  return outcome.kind === 'signalled' ? SIGNAL_BASE + outcome.signal : KILLED;
}
