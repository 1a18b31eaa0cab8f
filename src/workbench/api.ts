import type { Isolation } from '../core/cell.ts';
import type { Limits } from '../core/limits.ts';
import type { InstalledPackage } from '../core/installed-package.ts';
import type { FsReply } from '../wire/session-files.ts';
import type { Denial, Permission } from '../wire/permissions.ts';

/** Whose workbench it is: those of others are not even named. */
export interface Owner {
  readonly tenant: string;
}

/** `preload`: a confined process of the host per run; `container`: one cell per workbench. */
export const EXECUTION_MODES = ['preload', 'container'] as const;
export type ExecutionMode = (typeof EXECUTION_MODES)[number];

/** What this server can do, for `runner://capabilities` and for people. */
export interface WorkbenchFacts {
  readonly mode: ExecutionMode;
  readonly driver: string;
  readonly runtime: string;
  readonly languages: readonly string[];
  readonly limits: Limits;
  readonly idleMs: number;
  /** What is weaker than it could be here. */
  readonly notes: readonly string[];
}

/** All workbenches of this server. */
export interface Workbenches {
  /** The driver is chosen with the first run; until then `driver` and `runtime` say so. */
  facts(): WorkbenchFacts;
  /** Makes no cell yet: the first run does. Throws TOO_BUSY, QUOTA_EXCEEDED or SHUTTING_DOWN. */
  open(owner: Owner): Workbench;
  /** Throws WORKBENCH_UNKNOWN; the message says so if it has expired. Counts as use. */
  find(owner: Owner, id: string): Workbench;
  list(owner: Owner): readonly Workbench[];
  readonly snippets: Snippets;
  /** Ends every workbench. */
  close(): Promise<void>;
}

/** An AI client's place to run code: a cell, files, permissions, runs. */
export interface Workbench {
  /** Opaque, 128 random bits: whoever knows it and is the owner may use it. */
  readonly id: string;
  readonly permissions: Permissions;
  /**
   * Begins a run, or queues it behind the one that runs. Throws at once what is wrong with the request
   * (LANGUAGE_UNKNOWN, LIMIT_TOO_HIGH) or with the moment (TOO_BUSY, WORKBENCH_UNKNOWN, SHUTTING_DOWN).
   */
  run(request: CodeRequest): CodeRun;
  /** Throws RUN_UNKNOWN. Runs are known until the workbench ends, bounded in number. */
  findRun(id: string): CodeRun;
  runs(): readonly CodeRun[];
  readonly files: WorkbenchFiles;
  /** Milliseconds since 1970; a moment that every use moves on. */
  expiresAt(): number;
  /** Ends what runs, removes the cell and its files. May be called twice. */
  close(): Promise<void>;
}

/**
 * The work folder of the cell, which is also the cwd of runs; by the cell's own rights, no link followed. Where every
 * language has a cell of its own, it is that of the run before.
 */
export interface WorkbenchFiles {
  /** A file, or the entries of a folder. */
  read(path: string): Promise<FsReply>;
  write(files: readonly { readonly path: string; readonly content: Uint8Array }[]): Promise<void>;
}

export interface CodeRequest {
  readonly code: string;
  /** Of the language table; `typescript` unless given. */
  readonly language: string;
  /** Beside those that the code imports. */
  readonly packages: readonly string[];
  /** Names of saved snippets that the code may import as `snippets/<name>`. */
  readonly snippets: readonly string[];
  readonly files: readonly { readonly path: string; readonly content: Uint8Array }[];
  readonly stdin: string | undefined;
  readonly timeoutMs: number | undefined;
}

export type RunPhase = 'waiting' | 'packages' | 'image' | 'cell' | 'running' | 'ended';

export interface RunProgress {
  readonly phase: RunPhase;
  /** For people: what is being done, or the newest output. */
  readonly message: string;
}

/** One run. It goes on without whoever started it, until it ends, times out or is cancelled. */
export interface CodeRun {
  readonly id: string;
  readonly language: string;
  readonly phase: RunPhase;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** So far, cut in the middle where it is long. */
  output(): RunOutput;
  /** Never rejects: failures of ours are results, too. */
  readonly result: Promise<CodeResult>;
  /** Called at changes of phase and for new output, at most ten times a second. Returns how to stop it. */
  watch(listener: (progress: RunProgress) => void): () => void;
  /** Resolves when nothing of it runs any more. */
  cancel(): Promise<void>;
}

export interface RunOutput {
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  /** Bytes that were left out of the middle. */
  readonly stdoutCut: number;
  readonly stderrCut: number;
}

/**
 * `ok`: exit code 0; `error`: any other end of its own; `denied`: it ended because a permission is missing; `failed`: it
 * did not run, because of a package, its syntax or us.
 */
export type RunStatus = 'ok' | 'error' | 'timeout' | 'memory' | 'cancelled' | 'denied' | 'failed';

export interface CodeResult extends RunOutput {
  readonly status: RunStatus;
  /** Undefined when it did not run. */
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  /** What went wrong, in a sentence, and what to do. */
  readonly message: string | undefined;
  readonly hint: string | undefined;
  /** Accesses that were refused, each with the exact permission that would allow it. */
  readonly denials: readonly Denial[];
  readonly packages: readonly InstalledPackage[];
  /** Packages that this run had to install. */
  readonly installed: readonly InstalledPackage[];
  /** Paths in the work folder that it made or changed, bounded in number. */
  readonly filesChanged: readonly { readonly path: string; readonly sizeBytes: number }[];
  readonly durationMs: number;
  /** Milliseconds by phase. */
  readonly phases: Readonly<Partial<Record<RunPhase, number>>>;
  readonly limits: Limits;
  /** Undefined when no cell was made. */
  readonly isolation: Isolation | undefined;
  readonly cellId: string | undefined;
  readonly warnings: readonly string[];
}

/** What the code of a workbench may reach beyond its cell. In memory: a new workbench begins with none. */
export interface Permissions {
  list(): readonly Permission[];
  /** Throws PERMISSION_REFUSED for what the operator does not let anybody grant, or nobody could enforce here. */
  grant(permission: Permission): void;
  /** Says whether there was one like it. */
  revoke(permission: Permission): boolean;
}

/** Code that is kept under a name, for everybody of the same tenant. */
export interface Snippets {
  /** Throws SNIPPET_REFUSED. Replaces one of the same name. */
  save(owner: Owner, snippet: { readonly name: string; readonly code: string }): Promise<Snippet>;
  list(owner: Owner): Promise<readonly Snippet[]>;
  /** Throws SNIPPET_UNKNOWN. */
  get(owner: Owner, name: string): Promise<Snippet & { readonly code: string }>;
  /** Throws SNIPPET_UNKNOWN. */
  remove(owner: Owner, name: string): Promise<void>;
}

export interface Snippet {
  readonly name: string;
  /** From its `@description`. */
  readonly description: string;
}
