import type { Cell, CellUsage } from '../../core/cell.ts';
import type { Exec, ExecRequest } from '../../core/exec.ts';
import { KnownCell } from '../known-cell.ts';

export interface HostCellParts extends Pick<Cell, 'id' | 'name' | 'isolation' | 'workdir'> {
  readonly main: ExecRequest | undefined;
  cleanUp(): Promise<void>;
}

/** A folder of the host, and the processes that work in it. */
export abstract class HostCell extends KnownCell implements Cell {
  abstract readonly main: Exec | undefined;
  readonly workdir: string;
  readonly #gone = Promise.withResolvers<void>();
  readonly gone = this.#gone.promise;
  readonly #cleanUp: () => Promise<void>;
  #disposing: Promise<void> | undefined;

  constructor(parts: HostCellParts) {
    super(parts);
    this.workdir = parts.workdir;
    this.#cleanUp = () => parts.cleanUp();
  }

  abstract exec(request: ExecRequest): Promise<Exec>;
  abstract usage(): Promise<CellUsage>;
  /** Ends every process of the cell. */
  protected abstract endAll(): Promise<void>;

  protected get isEnding(): boolean {
    return this.#disposing !== undefined;
  }

  dispose(): Promise<void> {
    this.#disposing ??= this.#end();
    return this.#disposing;
  }

  async #end(): Promise<void> {
    await this.endAll();
    await this.#cleanUp();
    this.#gone.resolve();
  }
}
