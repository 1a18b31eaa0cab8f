import { spawn, type ChildProcess } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import type { CellUsage } from '../../core/cell.ts';
import type { Exec, ExecRequest, Usage } from '../../core/exec.ts';
import { ChildExec } from '../process/child-exec.ts';
import { HostCell, type HostCellParts } from '../process/host-cell.ts';
import { MARK, killMarked, terminateMarked } from '../process/marked-processes.ts';

/** Nobody counts for plain processes. */
const UNKNOWN_USAGE: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };

export interface SubprocessCellParts extends HostCellParts {
  /** Value of the environment variable by which the cell's processes are found. */
  readonly mark: string;
  fill(request: ExecRequest): ExecRequest;
}

/** A folder and some processes that carry a mark. */
export class SubprocessCell extends HostCell {
  readonly main: Exec | undefined;
  readonly #parts: SubprocessCellParts;
  #execs = 0;

  constructor(parts: SubprocessCellParts) {
    super(parts);
    this.#parts = parts;
    this.main = parts.main === undefined ? undefined : this.#start(parts.main, () => void this.dispose());
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

  protected async endAll(): Promise<void> {
    await killMarked(this.#parts.mark);
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
