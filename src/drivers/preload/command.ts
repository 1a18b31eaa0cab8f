import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { HotcellError } from '../../core/errors.ts';
import type { Exec, ExecEvent, ExecOutcome, KillCause } from '../../core/exec.ts';
import { EventQueue } from '../../lib/event-queue.ts';
import { signalGroup } from './process-group.ts';
import { Watch, type WatchOptions } from './watch.ts';

/** The words in which the launcher says why the program did not start are not without end. */
const WORDS_KEPT = 2000;

/** How a command is started. */
export interface Launch {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** For the launcher, on descriptor 3; it never stands where others could read it. */
  readonly plan: string | undefined;
}

export type LaunchedProcess = ChildProcess;

/** Starts the first process of a command, in a group of its own. A launcher then waits for its plan. */
export function startProcess({ argv, env, cwd }: Omit<Launch, 'plan'>): LaunchedProcess {
  const [program, ...rest] = argv;
  const child = spawn(program, rest, { env, cwd, detached: true, stdio: ['pipe', 'pipe', 'pipe', 'pipe'] });
  for (const stream of child.stdio) stream?.on('error', () => {});
  return child;
}

type Watched = Omit<WatchOptions, 'pid' | 'onPassed'>;
type Cause = KillCause | 'memoryBytes' | 'processes' | 'diskBytes';

/** A running command: one process group, watched and ended as a whole. */
export class Command implements Exec {
  readonly id: number;
  readonly events = new EventQueue<ExecEvent>();
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  readonly #stdin: Writable | null;
  readonly #watch: Watch | undefined;
  #cause: Cause | undefined;

  constructor(id: number, child: LaunchedProcess, plan: string | undefined, watched: Watched) {
    this.id = id;
    this.#child = child;
    this.#stdin = child.stdin;
    // Without a process nothing is closed, either.
    this.ended = new Promise((resolve) => {
      child.on('close', () => resolve());
      child.on('error', () => resolve());
    });
    if (child.pid !== undefined) {
      const onPassed = (limit: 'memoryBytes' | 'processes' | 'diskBytes'): void => this.#end(limit);
      this.#watch = new Watch({ ...watched, pid: child.pid, onPassed });
    }
    this.#wire(plan);
  }

  /** What it takes now. */
  current(): ReturnType<Watch['current']> | undefined {
    return this.#watch?.current();
  }

  write(bytes: Uint8Array): void {
    this.#stdin?.write(bytes);
  }

  closeStdin(): void {
    this.#stdin?.end();
  }

  kill(why: KillCause): Promise<void> {
    this.#end(why);
    return Promise.resolve();
  }

  terminate(): void {
    if (this.#child.pid !== undefined) signalGroup(this.#child.pid, 'SIGTERM');
  }

  usage(): ReturnType<Exec['usage']> {
    this.#watch?.current();
    return Promise.resolve(this.#usage());
  }

  #usage(): Awaited<ReturnType<Exec['usage']>> {
    return this.#watch?.usage() ?? { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
  }

  #end(cause: Cause): void {
    this.#cause ??= cause;
    if (this.#child.pid !== undefined) signalGroup(this.#child.pid, 'SIGKILL');
  }

  #wire(plan: string | undefined): void {
    const child = this.#child;
    const { stdout, stderr } = child;
    this.events.onFull = () => {
      stdout?.pause();
      stderr?.pause();
    };
    this.events.onDrained = () => {
      stdout?.resume();
      stderr?.resume();
    };
    stdout?.on('data', (bytes: Buffer) => this.events.push({ type: 'stdout', bytes }));
    stderr?.on('data', (bytes: Buffer) => this.events.push({ type: 'stderr', bytes }));
    const words = this.#handOver(plan);
    child.on('error', (error) => this.events.fail(notStarted(error.message)));
    child.on('exit', () => {
      this.#watch?.end();
      // The first process is the program: what it left running must not keep the streams open.
      if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
    });
    child.on('close', (code, signal) => void this.#finish(code, signal, words.text));
  }

  async #finish(code: number | null, signal: NodeJS.Signals | null, words: string): Promise<void> {
    if (words !== '' && this.#cause === undefined) {
      this.events.fail(notStarted(words));
      return;
    }
    if (code !== 0) await this.#watch?.lookAtDiskOnce();
    this.events.push({ type: 'exit', outcome: toOutcome(code, signal, this.#cause), usage: this.#usage() });
    this.events.end();
  }

  /** Gives the launcher its plan, and listens to what it has to say. */
  #handOver(plan: string | undefined): { text: string } {
    const words = { text: '' };
    const line = this.#child.stdio[3];
    if (!(line instanceof Socket)) return words;
    line.on('data', (bytes: Buffer) => {
      if (words.text.length < WORDS_KEPT) words.text += bytes.toString('latin1');
    });
    line.end(plan ?? '');
    return words;
  }
}

function notStarted(why: string): HotcellError {
  return new HotcellError('CELL_START_FAILED', `the program did not start: ${why}`);
}

function toOutcome(
  code: number | null,
  signal: NodeJS.Signals | null,
  cause: Cause | undefined,
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
