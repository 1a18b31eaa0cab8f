import type { Cell } from '../core/cell.ts';
import { HotcellError } from '../core/errors.ts';
import type { Exec, ExecEvent, ExecOutcome, ExecRequest, KillCause } from '../core/exec.ts';

export type ExitEvent = Extract<ExecEvent, { type: 'exit' }>;

/** What somebody who stays with a command looks after. */
export interface Attention {
  /** Longest time. */
  readonly timeMs?: number;
  /** At its time, or when nobody wants it any more, it is first asked to end, and has this long. Without it, it is killed. */
  readonly graceMs?: number;
  /** So much may both streams have together; then it is killed. */
  readonly outputBytes?: number;
  /** Aborted: nobody wants it any more. */
  readonly signal?: AbortSignal | undefined;
  /** A promise keeps what comes next waiting. */
  onOutput?(stream: 'stdout' | 'stderr', bytes: Uint8Array): void | Promise<void>;
  /** It cannot be killed; without this it is left to the end of its cell. */
  onUnkillable?(): void;
}

/**
 * Stays with a command to its end. The outcome names the cause when it was ended from here, also when it was only asked to
 * end and did. Throws when the cell is lost. `events` are those of the exec unless some have been read before.
 */
export async function attend(
  exec: Exec,
  attention: Attention,
  events: AsyncIterable<ExecEvent> = exec.events,
): Promise<ExitEvent> {
  using ending = new Ending(exec, attention);
  let room = attention.outputBytes ?? Number.POSITIVE_INFINITY;
  for await (const event of events) {
    if (event.type === 'exit') return { ...event, outcome: ending.read(event.outcome) };
    const taken = attention.onOutput?.(event.type, event.bytes);
    if (taken !== undefined) await taken;
    if (room >= 0 && (room -= event.bytes.length) < 0) ending.kill('outputBytes');
  }
  throw new HotcellError('INTERNAL', 'the events of an exec ended without exit');
}

/** Ends a command that takes too long, or that nobody wants any more. */
class Ending implements Disposable {
  readonly #exec: Exec;
  readonly #attention: Attention;
  readonly #cancel = (): void => this.#begin('cancelled');
  readonly #timers: NodeJS.Timeout[] = [];
  #asked: 'wallTimeMs' | 'cancelled' | undefined;

  constructor(exec: Exec, attention: Attention) {
    this.#exec = exec;
    this.#attention = attention;
    const { signal, timeMs } = attention;
    if (timeMs !== undefined) this.#timers.push(setTimeout(() => this.#begin('wallTimeMs'), timeMs));
    signal?.addEventListener('abort', this.#cancel);
    if (signal?.aborted === true) this.#cancel();
  }

  #begin(cause: 'wallTimeMs' | 'cancelled'): void {
    const { graceMs } = this.#attention;
    if (graceMs === undefined || this.#exec.terminate === undefined) {
      this.kill(cause);
      return;
    }
    if (this.#asked !== undefined) return;
    this.#asked = cause;
    this.#exec.terminate();
    this.#timers.push(setTimeout(() => this.kill(cause), graceMs));
  }

  /** A kill that fails must not end the server. */
  kill(cause: KillCause): void {
    this.#exec.kill(cause).catch(() => this.#attention.onUnkillable?.());
  }

  read(outcome: ExecOutcome): ExecOutcome {
    if (this.#asked === undefined) return outcome;
    return this.#asked === 'cancelled' ? { kind: 'cancelled' } : { kind: 'limit', limit: 'wallTimeMs' };
  }

  [Symbol.dispose](): void {
    this.#attention.signal?.removeEventListener('abort', this.#cancel);
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

/** Takes bytes as they come and keeps what it likes of them. */
export interface Sink {
  push(bytes: Uint8Array): void;
}

export interface RunOptions extends Attention {
  /** All of its input. */
  readonly input?: Uint8Array | undefined;
  readonly stdout?: Sink;
  readonly stderr?: Sink;
}

/** Where commands can be started: a cell, or what starts them in it and keeps a record. */
export type Starter = Pick<Cell, 'exec'>;

/** Runs one command, with all its input at hand, to its end. */
export async function runToEnd(
  cell: Starter,
  request: ExecRequest,
  options: RunOptions = {},
): Promise<ExitEvent> {
  const { input, stdout, stderr } = options;
  const exec = await cell.exec(request);
  try {
    if (input !== undefined && input.length > 0) exec.write(input);
    exec.closeStdin();
    return await attend(exec, {
      ...options,
      onOutput: (stream, bytes) => {
        (stream === 'stdout' ? stdout : stderr)?.push(bytes);
        return options.onOutput?.(stream, bytes);
      },
    });
  } finally {
    exec.lasting?.forget();
  }
}
