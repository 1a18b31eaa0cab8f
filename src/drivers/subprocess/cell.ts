import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Cell, CellUsage, Isolation } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { Exec, ExecEvent, ExecOutcome, ExecRequest, KillCause, Usage } from '../../core/exec.ts';
import { EventQueue } from '../../lib/event-queue.ts';
import { MARK, killMarked, terminateMarked } from '../process/marked-processes.ts';

/** Nobody counts for plain processes. */
const UNKNOWN_USAGE: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };

export interface SubprocessCellParts {
  readonly id: string;
  readonly name: string;
  readonly workdir: string;
  readonly isolation: Isolation;
  /** Value of the environment variable by which the cell's processes are found. */
  readonly mark: string;
  fill(request: ExecRequest): ExecRequest;
  readonly main: ExecRequest | undefined;
  cleanUp(): Promise<void>;
}

/** A folder and some processes that carry a mark. */
export class SubprocessCell implements Cell {
  readonly main: Exec | undefined;
  readonly gone: Promise<void>;
  readonly #parts: SubprocessCellParts;
  #markGone: () => void = () => {};
  #disposing: Promise<void> | undefined;
  #execs = 0;

  constructor(parts: SubprocessCellParts) {
    this.#parts = parts;
    this.gone = new Promise((resolve) => (this.#markGone = resolve));
    this.main = parts.main === undefined ? undefined : this.#start(parts.main, () => void this.dispose());
  }

  get id(): string {
    return this.#parts.id;
  }

  get name(): string {
    return this.#parts.name;
  }

  get workdir(): string {
    return this.#parts.workdir;
  }

  get isolation(): Isolation {
    return this.#parts.isolation;
  }

  async exec(request: ExecRequest): Promise<Exec> {
    return this.#start(request, () => {});
  }

  #start(request: ExecRequest, onEnd: () => void): Exec {
    const { argv, env, cwd, touch } = this.#parts.fill(request);
    const [program, ...rest] = argv;
    if (touch !== undefined) writeFileSync(touch, '\n');
    // Closed by a dot, so that the first exec's mark does not begin that of the tenth.
    const mark = `${this.#parts.mark}.${++this.#execs}.`;
    const child = spawn(program, rest, {
      env: { ...env, [MARK]: mark },
      cwd,
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    return toExec(child, mark, () => {
      if (touch !== undefined) rmSync(touch, { force: true });
      onEnd();
    });
  }

  usage(): Promise<CellUsage> {
    return Promise.resolve({ cpuMs: 0, memoryBytes: undefined, processes: undefined });
  }

  dispose(): Promise<void> {
    this.#disposing ??= this.#endAll();
    return this.#disposing;
  }

  async #endAll(): Promise<void> {
    await killMarked(this.#parts.mark);
    await this.#parts.cleanUp();
    this.#markGone();
  }
}

function toExec(child: ChildProcessWithoutNullStreams, mark: string, onEnd: () => void): Exec {
  const queue = new EventQueue<ExecEvent>();
  queue.onFull = () => {
    child.stdout.pause();
    child.stderr.pause();
  };
  queue.onDrained = () => {
    child.stdout.resume();
    child.stderr.resume();
  };
  let cause: KillCause | undefined;
  child.stdin.on('error', () => {});
  child.stdout.on('data', (bytes: Buffer) => queue.push({ type: 'stdout', bytes }));
  child.stderr.on('data', (bytes: Buffer) => queue.push({ type: 'stderr', bytes }));
  child.on('error', (error) => {
    queue.fail(
      new HotcellError('CELL_START_FAILED', `the program did not start: ${error.message}`, { cause: error }),
    );
    onEnd();
  });
  // The main process is the program: what it left running must not keep the streams open.
  child.on('exit', () => void killMarked(mark));
  child.on('close', (code, signal) => {
    queue.push({ type: 'exit', outcome: toOutcome(code, signal, cause), usage: UNKNOWN_USAGE });
    queue.end();
    onEnd();
  });
  return {
    events: queue,
    write: (bytes) => void child.stdin.write(bytes),
    closeStdin: () => child.stdin.end(),
    terminate: () => terminateMarked(mark),
    usage: () => Promise.resolve(UNKNOWN_USAGE),
    ended: new Promise((resolve) => child.on('close', () => resolve())),
    kill: async (why) => {
      cause ??= why;
      await killMarked(mark);
    },
  };
}

function toOutcome(
  code: number | null,
  signal: NodeJS.Signals | null,
  cause: KillCause | undefined,
): ExecOutcome {
  if (code !== null) return { kind: 'exited', code };
  if (cause === 'cancelled') return { kind: 'cancelled' };
  if (cause !== undefined) return { kind: 'limit', limit: cause };
  return {
    kind: 'signalled',
    signal: signal === null ? constants.signals.SIGKILL : constants.signals[signal],
  };
}
