import type { Exec, ExecRequest } from '../core/exec.ts';
import type { Permission } from '../wire/permissions.ts';
import type { EgressRefusal } from '../core/egress-refusal.ts';
import type { HeaderInjection } from './header-injection.ts';
import type { EgressReport, WayOut } from './way-out.ts';

/** A host that may be reached, with what may be asked of it. */
export type HttpRule = Omit<Extract<Permission, { type: 'http' }>, 'type' | 'description'>;

/** What may be reached: patterns and presets as in sessions, or rules. */
export type Allowed = string | HttpRule;

/** The way out of one cell, whichever leads to the gate: it decides, and tells. */
export abstract class GatedNetwork {
  /** Proxy variables for the environment of programs. */
  abstract readonly variables: Readonly<Record<string, string>>;
  /** Where cells share the loopback of this machine: the port that commands need, for `ExecRequest.reach`. */
  abstract readonly port: number | undefined;
  /** There is nothing to wait for. */
  abstract readonly isReady: boolean;
  readonly #egress: WayOut;

  constructor(egress: WayOut) {
    this.#egress = egress;
  }

  /** Resolves when there is a way out, or there is none after a while. */
  abstract untilReady(): Promise<void>;

  setAllow(allow: readonly Allowed[]): void {
    this.#egress.setAllow(allow);
  }

  /** For `refusalsSince`. */
  mark(): number {
    return this.#egress.mark();
  }

  refusalsSince(mark: number): EgressRefusal[] {
    return this.#egress.refusalsSince(mark);
  }

  /** What it lets through, and what came of it so far. */
  describe(): EgressReport {
    return this.#egress.describe();
  }

  /** Everything that can be reached, with the presets spelled out. */
  reachable(): string[] {
    return this.#egress.reachable();
  }

  close(): void {
    this.#egress.close();
  }
}

export type CellNetwork = Pick<GatedNetwork, keyof GatedNetwork>;

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
