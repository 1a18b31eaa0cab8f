import type { ExecEndReason, LimitReached } from '../core/session-words.ts';
import type { EgressRefusal } from '../core/egress-refusal.ts';

/** How a command ended. */
export interface ExecEnd {
  readonly reason: ExecEndReason;
  /** The same for a person. */
  readonly message: string;
  /** Name of the signal that ended it. */
  readonly signal: string | null;
  /** Who asked for its end. */
  readonly killedBy: string | null;
}

export interface ChangedFile {
  readonly path: string;
  readonly change: 'added' | 'modified' | 'deleted';
  readonly size: number;
  /** Of small files. */
  readonly content?: string | undefined;
  readonly encoding?: 'utf8' | 'base64' | undefined;
}

/** All that is told of a command that has ended, but for its output. */
export interface ExecResult {
  readonly execId: string;
  /** It ended by itself with exit code 0. */
  readonly ok: boolean;
  readonly exitCode: number;
  /** Where the next command begins. */
  readonly cwd: string;
  /** Why it began elsewhere than asked. */
  readonly cwdNote: string | null;
  readonly durationMs: number;
  readonly end: ExecEnd;
  /** Fatal or not. */
  readonly limitsReached: readonly LimitReached[];
  readonly cpuTimeMs: number;
  readonly peakMemoryBytes: number | null;
  /** Bytes written, also those that were cut. */
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  /** Connections that were refused meanwhile. */
  readonly egressRefused: readonly EgressRefusal[];
  /** Where they were asked for. */
  readonly changedFiles?: readonly ChangedFile[] | undefined;
}
