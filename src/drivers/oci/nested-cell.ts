import type { Cell, CellUsage, Isolation } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { Exec } from '../../core/exec.ts';
import { KnownCell } from '../known-cell.ts';
import { WORKDIR_IN_CELL } from '../linux/cell-paths.ts';
import type { SlotCgroup } from './slot-cgroup.ts';

export interface NestedCellParts {
  readonly id: string;
  readonly name: string;
  readonly isolation: Isolation;
  readonly main: Exec;
  readonly cgroup: SlotCgroup;
  limitMemory(bytes: number): Promise<void>;
}

/** One run behind walls of its own, inside a cell with slots. It ends with its program, and the kernel removes all of it. */
export class NestedCell extends KnownCell implements Cell {
  readonly workdir = WORKDIR_IN_CELL;
  readonly main: Exec;
  readonly gone: Promise<void>;
  readonly limitMemory: (bytes: number) => Promise<void>;
  readonly #cgroup: SlotCgroup;

  constructor(parts: NestedCellParts) {
    super(parts);
    this.main = parts.main;
    this.gone = parts.main.ended;
    this.#cgroup = parts.cgroup;
    this.limitMemory = (bytes) => parts.limitMemory(bytes);
  }

  exec(): Promise<Exec> {
    return Promise.reject(new HotcellError('INTERNAL', 'this cell was made for one program'));
  }

  usage(): Promise<CellUsage> {
    return Promise.resolve(this.#cgroup.current());
  }

  async dispose(): Promise<void> {
    await this.main.kill('cancelled');
    await this.main.ended;
  }
}
