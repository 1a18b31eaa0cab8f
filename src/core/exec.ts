import type { LimitName } from './limits.ts';

/** Limits that can be told to have been reached; at the others a program is slowed down or gets an error itself. */
export type ReachableLimit = Extract<LimitName, 'wallTimeMs' | 'memoryBytes' | 'processes' | 'outputBytes'>;

export interface ExecRequest {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** File made before the program starts, because some interpreters insist on it, and removed after its end. */
  readonly touch?: string;
}

/** The fate of a program is data; an exception is a failure of ours. */
export type ExecOutcome =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'signalled'; readonly signal: number }
  | { readonly kind: 'limit'; readonly limit: Exclude<ReachableLimit, 'processes'> }
  | { readonly kind: 'cancelled' };

/** Why somebody kills an exec: a limit that the supervisor keeps, or a caller who no longer wants it. */
export type KillCause = 'wallTimeMs' | 'outputBytes' | 'cancelled';

export interface Usage {
  readonly cpuMs: number;
  /** Undefined where nobody counts it. */
  readonly peakMemoryBytes: number | undefined;
  /** Limits that the kernel reported as reached, fatal or not. */
  readonly reached: readonly ReachableLimit[];
  /** The share of the workdir that is taken, from 0 to 1; undefined where nobody says. */
  readonly diskShare?: number;
}

export type ExecEvent =
  | { readonly type: 'stdout'; readonly bytes: Uint8Array }
  | { readonly type: 'stderr'; readonly bytes: Uint8Array }
  | { readonly type: 'exit'; readonly outcome: ExecOutcome; readonly usage: Usage };

/** One running command. The last event is always `exit`; `events` throws when the cell was lost. */
export interface Exec {
  readonly events: AsyncIterable<ExecEvent>;
  write(bytes: Uint8Array): void;
  closeStdin(): void;
  /** Ends the command and every process it started; resolves when the signal is sent. The outcome names the cause. */
  kill(cause: KillCause): Promise<void>;
  /** What it has used so far. */
  usage(): Promise<Usage>;
  /** Resolves when the command has ended for whatever reason, before anything is cleaned up. */
  readonly ended: Promise<void>;
}
