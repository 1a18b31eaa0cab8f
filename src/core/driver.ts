import type { Cell, CellImage, CellSpec, CellSummary, LeftCell, LeftLastingCell } from './cell.ts';
import type { ExecRequest } from './exec.ts';
import type { Limits } from './limits.ts';
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

/** What a cell with slots is made for. */
export interface NestSpec {
  readonly name: string;
  /** Of each run. */
  readonly limits: Limits;
  /** Runs side by side. */
  readonly slots: number;
  /** An interpreter that forks the runs once it has booted, for `fork`; else every run executes its own command. */
  readonly forker?: ExecRequest;
}

/** One run in a slot. */
export interface NestedRun {
  readonly name: string;
  /**
   * `hot`: the command begins at once, on the file that it asks for. `late`: it waits for its job, behind walls already.
   * `fork`: what waits is a copy of the forker, and there is no command.
   */
  readonly mode: 'hot' | 'late' | 'fork';
  readonly command?: ExecRequest;
}

/** A cell that was made once and whose slots each serve one run after the other, every one behind walls of its own. */
export interface Nest {
  readonly id: string;
  /** What is left of its slots' runs: no identity is given twice. */
  readonly runsLeft: number;
  /** Precondition: the run before in this slot has ended. What comes is a cell like any other, with `main`. */
  begin(slot: number, run: NestedRun): Promise<Cell>;
  /** Resolves when it has ended for whatever reason, with all its runs. */
  readonly gone: Promise<void>;
  dispose(): Promise<void>;
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
  /**
   * A cell with slots; its walls have been looked at from inside. Throws POLICY_UNENFORCEABLE with the reason where they
   * cannot be made as planned. Absent where no such cells are known.
   */
  openNest?(spec: NestSpec): Promise<Nest>;
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
