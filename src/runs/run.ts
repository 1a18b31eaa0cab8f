import type { Isolation } from '../core/cell.ts';
import type { ExecOutcome, ReachableLimit } from '../core/exec.ts';
import type { Job } from '../core/job.ts';
import type { InstalledPackage } from '../core/installed-package.ts';

export interface RunRequest extends Job {
  readonly language: string;
  readonly stdin: Uint8Array;
  readonly timeoutMs?: number;
  readonly memoryBytes?: number;
}

/** One stream of output as the caller gets it: cut at the cap, in whole characters. */
export interface KeptOutput {
  readonly text: string;
  readonly totalBytes: number;
  readonly truncated: boolean;
}

export interface RunResult {
  readonly outcome: ExecOutcome;
  /** The number a shell would show: 124 after a timeout, 128 + n after signal n. */
  readonly exitCode: number;
  readonly limitHit: ReachableLimit | undefined;
  readonly stdout: KeptOutput;
  readonly stderr: KeptOutput;
  readonly wallTimeMs: number;
  readonly cpuTimeMs: number;
  readonly peakMemoryBytes: number | undefined;
  readonly cellId: string;
  readonly language: string;
  readonly imageName: string;
  readonly filePath: string;
  readonly isolation: Isolation;
  readonly warm: boolean;
  /** That it could import; undefined where none are installed for runs. */
  readonly packages: readonly InstalledPackage[] | undefined;
}

export interface LanguageStatus {
  readonly name: string;
  readonly extension: string;
  readonly imageName: string;
  readonly available: boolean;
  readonly problem: string | undefined;
  readonly state: 'running' | 'stopped';
}

/** Sees output while it comes. Bytes past the output cap of the reply are seen too. */
export type OutputListener = (stream: 'stdout' | 'stderr', bytes: Uint8Array) => void;

/** The one-shot use case, as the doors know it. */
export interface Runs {
  /** Throws HotcellError for failures of ours or of the request; what the program did is in the result. */
  run(request: RunRequest, options: { signal: AbortSignal; onOutput?: OutputListener }): Promise<RunResult>;
  languages(): LanguageStatus[];
  /** Throws LANGUAGE_UNKNOWN, with the names that there are. */
  requireLanguage(name: string): void;
}
