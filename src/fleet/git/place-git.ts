import type { CellFolder, CellOwner } from '../../core/cell.ts';
import type { Author } from './author.ts';

export interface RunInCellOptions {
  readonly input?: Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
  /** More on stdout ends the program, and the call throws FILE_TOO_LARGE. */
  readonly limitBytes?: number;
  readonly timeoutMs?: number;
  /** Stdout goes there, in order, at most `limitBytes` of it, and the result has none. */
  readonly onStdout?: (bytes: Uint8Array) => void;
}

export interface RunInCellResult {
  readonly code: number;
  readonly stdout: Uint8Array;
  readonly stderr: string;
}

/**
 * Runs a program in the cell, in its worktree, with `env` beside what every program there has.
 * SECURITY: what comes back was written by whoever rules the cell.
 */
export type RunInCell = (
  argv: readonly [string, ...string[]],
  options?: RunInCellOptions,
) => Promise<RunInCellResult>;

/** What a worker that was lost had left behind. */
export interface Settled {
  /** Commits that were never carried out are kept under this ref. */
  readonly ref?: string;
  /** Changes that were never committed, as `git apply` takes them. */
  readonly patch?: Uint8Array;
  /** There was more than `patch` has. */
  readonly patchCut?: true;
  /** Why something could not be kept. */
  readonly problem?: string;
}

export interface TakenCommits {
  /** The head of the worker branch, now. */
  readonly commit: string;
  /** Names that differ between the head before and now. */
  readonly files: string[];
}

/** The git side of one worker's place. One call at a time. */
export interface PlaceGit {
  /** For `CellSpec.folders`. */
  readonly folders: readonly CellFolder[];
  /** What the agent and every other program of the cell must have, so that plain `git` works for them. */
  readonly env: Readonly<Record<string, string>>;
  /** Where programs of the cell see the worktree. */
  readonly workdir: string;
  /** Before the cell is made: worktree and git folder. Given to `owner`, which takes root. */
  prepare(owner?: CellOwner): Promise<void>;
  /** After the cell has started: keeps what a lost worker left, then worktree and branch are at `head()`; ignored files stay. */
  settle(run: RunInCell): Promise<Settled>;
  /** Branch and worktree are at `commit`. What is not committed is gone; commits that `commit` lacks are kept as by `settle`. */
  moveTo(run: RunInCell, commit: string): Promise<void>;
  /** The last commit that was carried out. */
  head(): Promise<string>;
  /** Everything in the worktree that is not ignored, also on top of commits that the agent has made. */
  commit(
    run: RunInCell,
    message: string,
    author: Author,
    options: CommitOptions,
  ): Promise<{ readonly moved: boolean }>;
  /**
   * Carries the commits since `head()` out of the cell. Throws if they do not continue it. `accept` is called before the
   * branch moves, which it does not if that throws.
   */
  takeCommits(run: RunInCell, accept?: (taken: TakenCommits) => void): Promise<TakenCommits>;
  /** A patch, cut at `limitBytes`. Commits that were carried out, or are in the repository. */
  diff(from: string, to: string, limitBytes: number): Promise<Uint8Array>;
  /** Worktree and git folder; branches stay. */
  remove(): Promise<void>;
}

export interface CommitOptions {
  /** Makes a commit even if nothing was changed. */
  readonly allowEmpty: boolean;
}
