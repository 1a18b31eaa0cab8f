import type { Enforcement } from './enforcement.ts';
import type { Exec, ExecRequest } from './exec.ts';
import type { Limits } from './limits.ts';

/** What the root of a cell is made from, for drivers that use images. */
export interface CellImage {
  /** In a registry, such as `python:3.10-slim`. */
  readonly name: string | undefined;
  /** The recipe below `images/`: what was built from it on this machine is preferred. */
  readonly recipe: string | undefined;
}

/**
 * What a cell is made from. In `main` and in every exec the driver fills in `{workdir}` (the writable folder)
 * and `{guest}` (where the guest files are seen from inside).
 */
export interface CellSpec {
  readonly name: string;
  readonly kind: 'run' | 'session';
  readonly limits: Limits;
  /** Drivers that use images need it. */
  readonly image?: CellImage;
  /** The program the cell is started with. Without it the cell idles until `exec`. */
  readonly main?: ExecRequest;
}

/** Every result names the isolation that was really used. */
export interface Isolation {
  readonly driver: string;
  readonly runtime: string;
  readonly enforcement: Enforcement;
}

export interface CellSummary {
  readonly id: string;
  readonly name: string;
}

/** A file to be written; paths are relative to the workdir. */
export interface CellFile {
  readonly path: string;
  readonly content: Uint8Array;
  /** 0644 unless given. */
  readonly mode?: number;
}

export interface FileEntry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
  readonly sizeBytes: number;
}

/** The files of a cell, seen and made with the rights of its programs. Throws FILE_REFUSED for what they could not do. */
export interface CellFiles {
  write(files: readonly CellFile[]): Promise<void>;
  /** Refuses a file of more than `limitBytes`. */
  read(path: string, limitBytes: number): Promise<Uint8Array>;
  /** `.` is the workdir. */
  list(path: string): Promise<FileEntry[]>;
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
  /** As `exec`: only in a cell without `main`. */
  readonly files: CellFiles;
  /** Changes the memory limit of the running cell; undefined where that cannot be done. */
  readonly limitMemory: ((bytes: number) => Promise<void>) | undefined;
  /** Resolves when the cell has ended for whatever reason and nothing of it is left. */
  readonly gone: Promise<void>;
  /** Kills everything in the cell and removes every trace. May be called twice. */
  dispose(): Promise<void>;
}

interface Places {
  readonly workdir: string;
  readonly guest: string;
}

/** A request with every placeholder filled in; `base` is what every program finds in its environment. */
export function fillRequest(
  request: ExecRequest,
  places: Places,
  base: Readonly<Record<string, string>>,
): ExecRequest & { readonly cwd: string } {
  const fill = (text: string): string => fillPlaceholders(text, places);
  const [program, ...rest] = request.argv;
  const env = Object.entries(request.env).map(([name, value]) => [name, fill(value)] as const);
  return {
    argv: [fill(program), ...rest.map(fill)],
    env: { ...base, ...Object.fromEntries(env) },
    cwd: request.cwd ?? places.workdir,
    ...(request.touch === undefined ? {} : { touch: fill(request.touch) }),
  };
}

/** `{workdir}` and `{guest}` in an argv or env value; nothing else is replaced. */
export function fillPlaceholders(text: string, places: Places): string {
  return text.replaceAll('{workdir}', () => places.workdir).replaceAll('{guest}', () => places.guest);
}
