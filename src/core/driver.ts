import type { Cell, CellImage, CellSpec, CellSummary, LeftCell, LeftLastingCell } from './cell.ts';
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

/** What a driver is like, as data. Most of it is known before one is made. */
export interface DriverTraits {
  /**
   * Where it makes walls: around a cell with a file system and a network of its own, around each command
   * (`ExecRequest.reach`) in those of the host, or nowhere.
   */
  readonly confines: 'cells' | 'commands' | 'nothing';
  /** Cells are made from images. Elsewhere they have the programs of this machine. */
  readonly images: boolean;
  /** A cell costs so much that runs share one per language unless somebody asks for fresh ones. */
  readonly sharesByDefault: boolean;
  /** Commands can have a terminal; where they cannot, `ExecRequest.terminal` is refused. */
  readonly terminals: boolean;
  /** Programs of a cell can work in folders of the host; where they cannot, `kind: 'worker'` is refused. */
  readonly workers: boolean;
  /** Cells can see folders of this machine, and are not on another one. */
  readonly hostFolders: boolean;
}

export interface LastingCells {
  /**
   * One that another server made, by its `record`; `spec` is what it was made from. Throws CELL_LOST when there is no such
   * cell any more.
   */
  adopt(record: string, spec: CellSpec): Promise<Cell>;
  /** Those of all stores. Rejects when that cannot be told now. */
  list(): Promise<LeftLastingCell[]>;
  /** Removes those of this store but for the ones with these ids. Returns the ids of those removed. */
  reclaim(store: string, keep: ReadonlySet<string>): Promise<string[]>;
}

/** A way to make cells. Vendor-free: nothing of a runtime's own words crosses this line. */
export interface Driver {
  readonly name: string;
  readonly traits: DriverTraits;
  /** Can it serve here, and who enforces what? Has no side effects that outlive it. */
  probe(): Promise<Probe>;
  create(spec: CellSpec): Promise<Cell>;
  /** Cells that outlive the server (`CellSpec.lasting`). Absent where they end with it: then such a spec is refused. */
  readonly lasting?: LastingCells;
  /** The live cells of this instance. */
  list(): CellSummary[];
  /** What cells with this image are really made from, for receipts. Absent where cells are made from none. */
  imageName?(image: CellImage): string;
  /** Why no cell can be made at present; undefined as long as all is well. Absent where nothing can be away. */
  problem?(): string | undefined;
  /** Cells of instances that are no longer alive, which `reclaim` would remove. */
  orphans(): Promise<LeftCell[]>;
  /** Removes what instances that are no longer alive left behind; never touches a living one. Returns cell ids. */
  reclaim(): Promise<string[]>;
  /** Disposes every cell of this instance but the lasting ones, which it lets go, and everything the driver itself holds. */
  close(): Promise<void>;
}

/** For receipts: the image, or the program of this machine that stands in for one. */
export function imageNameOf(driver: Driver, image: CellImage, program: string): string {
  return driver.imageName?.(image) ?? `host:${program}`;
}
