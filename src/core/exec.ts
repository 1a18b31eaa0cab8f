import type { LimitName } from './limits.ts';

/** Limits that can be told to have been reached; at the others a program is slowed down or gets an error itself. */
export type ReachableLimit = Extract<LimitName, 'wallTimeMs' | 'memoryBytes' | 'processes' | 'outputBytes'>;

export interface ExecRequest {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** Words and variables from outside, put after the others; what looks like a placeholder in them is none. */
  readonly verbatim?: {
    readonly argv: readonly string[];
    readonly env: Readonly<Record<string, string>>;
  };
  /** Never filled in, because it may come from outside. */
  readonly cwd?: string;
  /** It begins in this folder of the spec, by its name, whatever `cwd` says. */
  readonly folder?: string;
  /** File made before the program starts, because some interpreters insist on it, and removed after its end. */
  readonly touch?: string;
  /** Where it begins when `cwd` cannot be entered any more; without it such a command fails. */
  readonly fallbackCwd?: string;
  /** A terminal of this size instead of pipes; all its output is stdout then. Only with an agent. */
  readonly terminal?: TerminalSize;
  /** The cell itself keeps it, also when no server is there. Only with an agent. */
  readonly deadline?: Deadline;
  /** What this command alone may reach, where walls are made around commands; elsewhere it opens nothing. */
  readonly reach?: Reach;
}

/** When something is asked to end (SIGTERM), counted from now, and for how long it may then go on before it is killed. */
export interface Deadline {
  readonly afterMs: number;
  readonly graceMs: number;
}

/** Holes in the walls around one command, by name. Without any it has its workdir and the programs of the host. */
export interface Reach {
  /** Paths of the host, with everything below them. */
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** The one TCP port of this machine that it may connect to. */
  readonly port: number | undefined;
  /** May it start programs of the host beside the one it is? */
  readonly programs: boolean;
}

export interface TerminalSize {
  readonly rows: number;
  readonly columns: number;
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
  | {
      readonly type: 'exit';
      readonly outcome: ExecOutcome;
      readonly usage: Usage;
      /** Where the command's shell ended, if it said so and the request has `fallbackCwd`. Hostile, like all output. */
      readonly cwd?: string;
      /** It began in `fallbackCwd`. */
      readonly fellBack?: boolean;
    };

/** A command that may outlive the server. */
export interface LastingExec {
  /** Its name towards `LastingCell.resume`. */
  readonly number: number;
  /** Its end has been noted: nobody will resume it. */
  forget(): void;
}

/** One running command. The last event is always `exit`; `events` throws when the cell was lost. */
export interface Exec {
  readonly events: AsyncIterable<ExecEvent>;
  write(bytes: Uint8Array): void;
  closeStdin(): void;
  /** Ends the command and every process it started; resolves when the signal is sent. The outcome names the cause. */
  kill(cause: KillCause): Promise<void>;
  /** Asks the command and every process it started to end (SIGTERM). Absent where nobody can be asked, only killed. */
  terminate?(): void;
  /** Another deadline than that of its request; undefined takes it back. Before `thaw` if it may have passed meanwhile. */
  endAfter?(deadline: Deadline | undefined): void;
  /** Only with a terminal. */
  resize?(size: TerminalSize): void;
  /** Only in a cell that lasts. */
  readonly lasting?: LastingExec;
  /** What it has used so far. */
  usage(): Promise<Usage>;
  /** Resolves when the command has ended for whatever reason, before anything is cleaned up. */
  readonly ended: Promise<void>;
}
