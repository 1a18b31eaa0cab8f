import { spawn, type ChildProcess } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import type { Cell, CellUsage, Isolation } from '../../core/cell.ts';
import type { Exec, ExecRequest, Usage } from '../../core/exec.ts';
import { ChildExec } from '../process/child-exec.ts';
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
    const exec = new MarkedExec(child, mark);
    void exec.ended.then(() => {
      if (touch !== undefined) rmSync(touch, { force: true });
      onEnd();
    });
    return exec;
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

/** Found by its mark, like everything that it starts. */
class MarkedExec extends ChildExec {
  readonly #mark: string;

  constructor(child: ChildProcess, mark: string) {
    super(child);
    this.#mark = mark;
  }

  protected async signal(name: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (name === 'SIGTERM') terminateMarked(this.#mark);
    else await killMarked(this.#mark);
  }

  protected figures(): Usage {
    return UNKNOWN_USAGE;
  }
}
