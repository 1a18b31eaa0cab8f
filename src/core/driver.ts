import type { Cell, CellImage, CellSpec, CellSummary } from './cell.ts';
import type { Enforcement } from './enforcement.ts';

export type Probe =
  | {
      readonly ok: true;
      /** For people and receipts, such as `crun 1.8.1`. */
      readonly runtime: string;
      readonly enforcement: Enforcement;
      /** What is weaker than it could be here, and the command that mends it. */
      readonly notes: readonly Note[];
      /** Facts about the host for `doctor`, such as its cgroup version. */
      readonly facts?: readonly Fact[];
    }
  | { readonly ok: false; readonly problem: string; readonly remedy: string };

export interface Note {
  readonly text: string;
  readonly remedy?: string;
}

export interface Fact {
  readonly name: string;
  readonly value: string;
}

/** A way to make cells. Vendor-free: nothing of a runtime's own words crosses this line. */
export interface Driver {
  readonly name: string;
  /** Whether the walls are made around each command (`ExecRequest.reach`), in the file system and network of the host. */
  readonly confines: 'cells' | 'commands';
  /** Can it serve here, and who enforces what? Has no side effects that outlive it. */
  probe(): Promise<Probe>;
  create(spec: CellSpec): Promise<Cell>;
  /**
   * A lasting cell that another server made, by its `record`; `spec` is what it was made from. Throws CELL_LOST when there
   * is no such cell any more.
   */
  adopt(record: string, spec: CellSpec): Promise<Cell>;
  /** Removes the lasting cells of this keeper but for those with these ids. Returns the ids of those removed. */
  reclaimLasting(keeper: string, keep: ReadonlySet<string>): Promise<string[]>;
  /** The live cells of this instance. */
  list(): CellSummary[];
  /** What cells with this image are really made from, for receipts; `program` is what they run. */
  imageName(image: CellImage, program: string): string;
  /** Why no cell can be made at present; undefined as long as all is well. */
  problem(): string | undefined;
  /** Removes what instances that are no longer alive left behind; never touches a living one. Returns cell ids. */
  reclaim(): Promise<string[]>;
  /** Disposes every cell of this instance but the lasting ones, which it lets go, and everything the driver itself holds. */
  close(): Promise<void>;
}
