import type { Enforcement } from './enforcement.ts';
import type { Exec, ExecRequest, Usage } from './exec.ts';
import type { Limits } from './limits.ts';

/**
 * What a cell is made from. In `main` and `env` the driver fills in `{workdir}` (the writable folder)
 * and `{guest}` (where the guest files are seen from inside).
 */
export interface CellSpec {
  readonly name: string;
  readonly kind: 'run' | 'session';
  readonly limits: Limits;
  /** The program the cell is started with. Without it the cell idles until `exec`. */
  readonly main?: ExecRequest;
  /** File made empty in the workdir before `main` starts: some interpreters insist on it. */
  readonly touch?: string;
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

export interface Cell {
  readonly id: string;
  readonly name: string;
  readonly workdir: string;
  readonly isolation: Isolation;
  /** The program of the spec, attached since its start. */
  readonly main: Exec | undefined;
  exec(request: ExecRequest): Promise<Exec>;
  /** Changes the memory limit of the running cell. */
  limitMemory(bytes: number): Promise<void>;
  usage(): Promise<Usage>;
  /** Resolves when the cell has ended for whatever reason and nothing of it is left. */
  readonly gone: Promise<void>;
  /** Kills everything in the cell and removes every trace. May be called twice. */
  dispose(): Promise<void>;
}

interface Places {
  readonly workdir: string;
  readonly guest: string;
}

export function fillArgv([program, ...rest]: ExecRequest['argv'], places: Places): [string, ...string[]] {
  return [fillPlaceholders(program, places), ...rest.map((word) => fillPlaceholders(word, places))];
}

/** `{workdir}` and `{guest}` in an argv or env value; nothing else is replaced. */
export function fillPlaceholders(text: string, places: Places): string {
  return text.replaceAll('{workdir}', () => places.workdir).replaceAll('{guest}', () => places.guest);
}
