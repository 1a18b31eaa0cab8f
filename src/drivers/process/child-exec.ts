import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { HotcellError } from '../../core/errors.ts';
import type { Exec, ExecEvent, ExecOutcome, KillCause, Usage } from '../../core/exec.ts';
import { EventQueue } from '../../lib/event-queue.ts';

/** Why we end a command. Some limits are told by the usage alone. */
export type EndCause = KillCause | 'memoryBytes' | 'processes' | 'diskBytes';

/** A command that is a child process of ours, with whatever it starts. How these are found is the driver's affair. */
export abstract class ChildExec implements Exec {
  readonly events = new EventQueue<ExecEvent>();
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  #cause: EndCause | undefined;

  constructor(child: ChildProcess) {
    this.#child = child;
    // Without a process nothing is closed, either.
    this.ended = new Promise((resolve) => {
      child.on('close', () => resolve());
      child.on('error', () => resolve());
    });
    const { stdin, stdout, stderr } = child;
    this.events.onFull = () => {
      stdout?.pause();
      stderr?.pause();
    };
    this.events.onDrained = () => {
      stdout?.resume();
      stderr?.resume();
    };
    stdin?.on('error', () => {});
    stdout?.on('data', (bytes: Buffer) => this.events.push({ type: 'stdout', bytes }));
    stderr?.on('data', (bytes: Buffer) => this.events.push({ type: 'stderr', bytes }));
    child.on('error', (error) => this.events.fail(notStarted(error.message, error)));
    child.on('exit', () => {
      this.onExit?.();
      // The first process is the program: what it left running must not keep the streams open.
      void this.signal('SIGKILL');
    });
    child.on('close', (code, signal) => void this.#finish(code, signal));
  }

  /** To the command and everything it started; resolves when the signal is sent. */
  protected abstract signal(name: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  /** What is known of it so far. */
  protected abstract figures(): Usage;
  /** The program has ended, and what it started has not been ended yet. */
  protected onExit?(): void;
  /** The last chance to look, before the end is told. Returns why the program did not even start, if it did not. */
  protected lookBack?(code: number | null): Promise<string | undefined>;

  write(bytes: Uint8Array): void {
    this.#child.stdin?.write(bytes);
  }

  closeStdin(): void {
    this.#child.stdin?.end();
  }

  kill(cause: KillCause): Promise<void> {
    return this.end(cause);
  }

  terminate(): void {
    void this.signal('SIGTERM');
  }

  usage(): Promise<Usage> {
    return Promise.resolve(this.figures());
  }

  protected end(cause: EndCause): Promise<void> {
    this.#cause ??= cause;
    return this.signal('SIGKILL');
  }

  async #finish(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    const why = await this.lookBack?.(code);
    if (why !== undefined && this.#cause === undefined) {
      this.events.fail(notStarted(why));
      return;
    }
    this.events.push({ type: 'exit', outcome: toOutcome(code, signal, this.#cause), usage: this.figures() });
    this.events.end();
  }
}

function notStarted(why: string, cause?: unknown): HotcellError {
  return new HotcellError('CELL_START_FAILED', `the program did not start: ${why}`, { cause });
}

function toOutcome(
  code: number | null,
  signal: NodeJS.Signals | null,
  cause: EndCause | undefined,
): ExecOutcome {
  if (code !== null) return { kind: 'exited', code };
  if (cause === 'cancelled') return { kind: 'cancelled' };
  // The usage says that it was processes or the disk.
  if (cause !== undefined && cause !== 'processes' && cause !== 'diskBytes')
    return { kind: 'limit', limit: cause };
  return {
    kind: 'signalled',
    signal: signal === null ? constants.signals.SIGKILL : constants.signals[signal],
  };
}
