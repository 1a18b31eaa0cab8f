import type { Enforcement } from './enforcement.ts';
import { HotcellError } from './errors.ts';
import type { Deadline, Exec, ExecRequest } from './exec.ts';
import type { Limits } from './limits.ts';

/** What the root of a cell is made from, for drivers that use images. */
export interface CellImage {
  /** In a registry, such as `python:3.10-slim`. */
  readonly name: string | undefined;
  /** The recipe below `images/`: what was built from it on this machine is preferred. */
  readonly recipe: string | undefined;
}

/**
 * What a cell is made from. In `main` and in every exec the driver fills in `{workdir}` (the writable folder),
 * `{guest}` (where the guest files are seen from inside) and the names of `folders`.
 */
export interface CellSpec {
  readonly name: string;
  /**
   * A worker is an agent at work in folders of the host; like a run it ends with the process that made it. Cells for
   * packages install or read them, and end with that.
   */
  readonly kind: 'run' | 'session' | 'worker' | 'packages';
  readonly limits: Limits;
  /** Drivers that use images need it. */
  readonly image?: CellImage;
  /** The program the cell is started with. Without it the cell idles until `exec`. */
  readonly main?: ExecRequest;
  /** The cell outlives the server, and `LastingCells.adopt` finds it again. Only without `main`. */
  readonly lasting?: Lasting;
  /** A folder to work in beside /tmp, at `WORKSPACE_IN_CELL`, for cells that last. */
  readonly workspace?: CellWorkspace;
  /** Folders of the host that programs of the cell may read and, unless it says so, not change; mounted in this order. */
  readonly folders?: readonly CellFolder[];
  /**
   * The ids that the programs of the cell have on the host, because writable folders belong to them. Never root's. Refused
   * where they cannot be given; plain processes are the caller, whatever it says. Not together with `workspace`.
   */
  readonly owner?: CellOwner;
}

/** Ids of the host. */
export interface CellOwner {
  readonly uid: number;
  readonly gid: number;
}

/** SECURITY: what is in it is open to the cell, now and later; its host path is never one that a cell can write to. */
export interface CellFolder {
  /** `{name}` in requests is where the cell sees it. */
  readonly name: string;
  /** On the host. May be a plain file, where `at` is a file of a folder that was mounted before it, or where nothing is yet. */
  readonly folder: string;
  /** Where cells with a file system of their own see it; others see the folder itself. */
  readonly at: string;
  /**
   * Programs of the cell may change what is in it; needs `owner` to be of use.
   * SECURITY: what a cell writes there is hostile to the host: links lead anywhere, names and contents are whatever the cell
   * likes, and all of it changes while the host looks. Nobody bounds how much it is.
   */
  readonly writable?: true;
}

/** Whose cell it is that outlives the server. */
export interface Lasting {
  /** Twelve hex digits that name the store of its records; servers without that store leave the cell alone. */
  readonly store: string;
}

export const WORKSPACE_IN_CELL = '/workspace';
/** The folder of a workspace that is /tmp in its cell. */
export const TMP_OF_WORKSPACE = '.tmp';

/** A folder of the host with a bound of its own, seen in the cell as /workspace, and a part of it as /tmp. */
export interface CellWorkspace {
  /** Undefined: in memory, bounded by `limits.diskBytes`, gone with the cell. */
  readonly folder: string | undefined;
  /** The host id that everything in the folder belongs to, and that the cell's user must have. */
  readonly owner: number;
}

/** Every result names the isolation that was really used. */
export interface Isolation {
  readonly driver: string;
  readonly runtime: string;
  readonly enforcement: Enforcement;
  /** `nested`: the walls were made inside a cell with slots (see `Nest`). Else by the runtime itself. */
  readonly walls?: 'nested' | 'runtime';
}

export interface CellSummary {
  readonly id: string;
  readonly name: string;
}

/** A cell that is there without a server of its own. */
export interface LeftCell {
  readonly id: string;
  /** When it was made, in milliseconds; undefined where nobody noted it. */
  readonly since: number | undefined;
}

/** One that was made to last. */
export interface LeftLastingCell extends LeftCell {
  /** The id of the store that has its record. */
  readonly store: string;
}

/** A file to be written; paths are relative to the workdir. */
export interface CellFile {
  readonly path: string;
  readonly content: Uint8Array;
  /** 0644 unless given. */
  readonly mode?: number;
}

/** A cell that outlives the server. */
export interface LastingCell {
  /** What `LastingCells.adopt` needs to find it again. Kept secret: whoever knows it can speak for the cell. */
  readonly record: string;
  /**
   * In a cell that was adopted: a command that was started before, from this byte of its output on. Undefined when the cell
   * knows of no such command.
   */
  resume(number: number, fromByte: number): Exec | undefined;
  /**
   * Lets the cell end itself, without any server. A later call takes the place of an earlier one; undefined takes it back.
   * Before `thaw` if it may have passed meanwhile.
   */
  endAfter(deadline: Deadline | undefined): void;
}

export interface Freezer {
  /** Stops all its processes where they are, until `thaw`. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
}

export interface Cell {
  readonly id: string;
  readonly name: string;
  readonly workdir: string;
  readonly isolation: Isolation;
  /** The program of the spec, attached since its start. */
  readonly main: Exec | undefined;
  /** One more command; only in a cell without `main`. */
  exec(request: ExecRequest): Promise<Exec>;
  /** Only in a cell that was made to last. */
  readonly lasting?: LastingCell;
  /** Absent where processes cannot be stopped as one. */
  readonly freezer?: Freezer;
  /** What all of the cell uses. */
  usage(): Promise<CellUsage>;
  /** Adds a line to what the maker of the cell keeps as its log, for people with its own tools; it may get lost. Absent where none is kept. */
  writeLog?(line: string): void;
  /** Changes the memory limit of the running cell; absent where that cannot be done. */
  limitMemory?(bytes: number): Promise<void>;
  /**
   * Resolves when the cell has ended for whatever reason and nothing of it is left but what the driver cannot remove. Never
   * rejects.
   */
  readonly gone: Promise<void>;
  /** Kills everything in the cell and removes every trace. May be called twice. */
  dispose(): Promise<void>;
}

export interface CellUsage {
  readonly cpuMs: number;
  readonly memoryBytes: number | undefined;
  readonly processes: number | undefined;
}

export interface PathsInCell {
  readonly workdir: string;
  readonly guest: string;
  /** Of `CellSpec.folders`. */
  readonly [name: string]: string;
}

/** The places of a cell that sees its folders at a path of their own. */
export function withFolders(places: PathsInCell, folders: readonly CellFolder[] = []): PathsInCell {
  return { ...places, ...Object.fromEntries(folders.map(({ name, at }) => [name, at])) };
}

/** A request with every placeholder filled in; `base` is what every program finds in its environment. */
export function fillRequest(
  request: ExecRequest,
  places: PathsInCell,
  base: Readonly<Record<string, string>>,
): ExecRequest & { readonly cwd: string } {
  const fill = (text: string): string => fillPlaceholders(text, places);
  const [program, ...rest] = request.argv;
  const env = Object.entries(request.env).map(([name, value]) => [name, fill(value)] as const);
  return {
    argv: [fill(program), ...rest.map(fill), ...(request.verbatim?.argv ?? [])],
    env: { ...base, ...Object.fromEntries(env), ...request.verbatim?.env },
    cwd: request.folder === undefined ? (request.cwd ?? places.workdir) : pathOf(request.folder, places),
    ...(request.touch === undefined ? {} : { touch: fill(request.touch) }),
    ...(request.fallbackCwd === undefined ? {} : { fallbackCwd: request.fallbackCwd }),
    ...(request.terminal === undefined ? {} : { terminal: request.terminal }),
    ...(request.deadline === undefined ? {} : { deadline: request.deadline }),
  };
}

function pathOf(name: string, places: PathsInCell): string {
  const place = Object.hasOwn(places, name) ? places[name] : undefined;
  if (place === undefined)
    throw new HotcellError('INTERNAL', `this cell has no folder with the name ${name}`);
  return place;
}

/** `{workdir}`, `{guest}` and names of folders in an argv or env value; nothing else is replaced. */
export function fillPlaceholders(text: string, places: PathsInCell): string {
  return text.replaceAll(/\{([a-z]+)\}/g, (whole, name: string) =>
    Object.hasOwn(places, name) ? (places[name] ?? whole) : whole,
  );
}
