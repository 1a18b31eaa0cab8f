import type { Exec, ExecRequest } from '../core/exec.ts';
import type { Permission } from '../wire/permissions.ts';
import type { EgressRefusal } from '../core/egress-refusal.ts';
import type { HeaderInjection } from './header-injection.ts';
import type { EgressReport } from './session.ts';

/** A host that may be reached, with what may be asked of it. */
export type HttpRule = Omit<Extract<Permission, { type: 'http' }>, 'type' | 'description'>;

/** What may be reached: patterns and presets as in sessions, or rules. */
export type Allowed = string | HttpRule;

/** The way out of one cell. */
export interface CellNetwork {
  /** Proxy variables for the environment of programs. */
  readonly variables: Readonly<Record<string, string>>;
  /** Where cells share the loopback of this machine: the port that commands need, for `ExecRequest.reach`. */
  readonly port: number | undefined;
  /** There is nothing to wait for. */
  readonly isReady: boolean;
  /** Resolves when there is a way out, or there is none after a while. */
  untilReady(): Promise<void>;
  setAllow(allow: readonly Allowed[]): void;
  /** For `refusalsSince`. */
  mark(): number;
  refusalsSince(mark: number): EgressRefusal[];
  /** What it lets through, and what came of it so far. */
  describe(): EgressReport;
  /** Everything that can be reached, with the presets spelled out. */
  reachable(): string[];
  close(): void;
}

export interface NetworkOptions {
  /** Headers that the gate adds to requests of the cell, which never sees them. */
  readonly inject?: readonly HeaderInjection[] | undefined;
}

/** Opens the way out of a cell; `startHelper` runs a command in it. */
export type OpenNetwork = (
  allow: readonly Allowed[],
  startHelper: (request: ExecRequest) => Promise<Exec>,
  options?: NetworkOptions,
) => Promise<CellNetwork>;
