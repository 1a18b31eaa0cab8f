import type { CellFolder, CellOwner } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { Author } from './author.ts';
import { CellGit, PLAIN_PATCH, type RunInCell } from './cell-git.ts';
import type { HostGit } from './host-git.ts';
import { measureTree } from './hostile-tree.ts';
import type { Room } from '../worktree-volumes.ts';
import { findCommit, moveRef, requireCommit, toRef } from './refs.ts';

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

export interface PlaceGitParts {
  readonly git: HostGit;
  readonly feature: string;
  readonly worker: number;
  readonly branch: string;
  readonly worktree: string;
  /** The bounded file system of the worktree and of what git of the cell keeps, if there is one. */
  readonly room?: Pick<Room, 'tree' | 'git'> | undefined;
  /** Where the feature is now: the branch begins there if there is none, and a cell knows its history. */
  readonly start: string;
  /** Of commits, also of those that the agent makes itself. */
  readonly author: Author;
}

/** The git side of one worker's place. One call at a time. */
export abstract class PlaceGit<Parts extends PlaceGitParts = PlaceGitParts> {
  /** For `CellSpec.folders`. */
  abstract readonly folders: readonly CellFolder[];
  /** What the agent and every other program of the cell must have, so that plain `git` works for them. */
  abstract readonly env: Readonly<Record<string, string>>;
  /** On the host: what grows when programs of the place write to the disk. */
  protected abstract readonly disk: readonly string[];
  /** Where programs of the cell see the worktree. */
  abstract readonly workdir: string;
  protected readonly parts: Parts;
  /** Of the worker branch. */
  protected readonly ref: string;
  /** Has the last commit that was carried out. */
  protected readonly accepted: string;

  constructor(parts: Parts, accepted = toRef(parts.branch)) {
    this.parts = parts;
    this.ref = toRef(parts.branch);
    this.accepted = accepted;
  }

  /** Before the cell is made: worktree and git folder. Given to `owner`, which takes root. */
  abstract prepare(owner?: CellOwner): Promise<void>;
  /** After the cell has started: keeps what a lost worker left, then worktree and branch are at `head()`; ignored files stay. */
  abstract settle(run: RunInCell): Promise<Settled>;
  /** Branch and worktree are at `commit`. What is not committed is gone; commits that `commit` lacks are kept as by `settle`. */
  abstract moveTo(run: RunInCell, commit: string): Promise<void>;
  /**
   * Carries the commits since `head()` out of the cell. Throws if they do not continue it. `accept` is called before the
   * branch moves, which it does not if that throws.
   */
  abstract takeCommits(run: RunInCell, accept?: (taken: TakenCommits) => void): Promise<TakenCommits>;
  /** Worktree and git folder, with what nobody has carried out; what was accepted is still known. */
  abstract removeFiles(): Promise<void>;
  /** Whatever the agent has left in the way of our own commit. */
  protected abstract clearWay(run: RunInCell): Promise<void>;
  /** Where git of the cell finds its folder and the worktree, if it cannot find out. */
  protected abstract readonly cellEnv: Readonly<Record<string, string>>;

  /** Bytes that the worktree takes, and what git of the place keeps; undefined when nobody can tell in good time. */
  async sizeOnDisk(): Promise<number | undefined> {
    let sum = 0;
    for (const folder of this.disk) {
      const bytes = await measureTree(this.parts.git, folder);
      if (bytes === undefined) return undefined;
      sum += bytes;
    }
    return sum;
  }

  /** Everything but the branch. */
  remove(): Promise<void> {
    return this.removeFiles();
  }

  /** The last commit that was carried out. */
  head(): Promise<string> {
    return requireCommit(this.parts.git, this.accepted);
  }

  /** Everything in the worktree that is not ignored, also on top of commits that the agent has made. */
  async commit(
    run: RunInCell,
    message: string,
    { allowEmpty }: { /** Also if nothing was changed. */ readonly allowEmpty: boolean },
  ): Promise<{ readonly moved: boolean }> {
    const known = await this.head();
    await this.clearWay(run);
    const head = await this.cell(run).commitAll(message, this.parts.author, { allowEmpty, known });
    return { moved: head !== known };
  }

  /**
   * A patch, cut at `limitBytes`. Commits that were carried out, or are in the repository: from objects alone.
   * SECURITY: no program of the user's configuration is run for it.
   */
  diff(from: string, to: string, limitBytes: number): Promise<Uint8Array> {
    const { git } = this.parts;
    const args = ['diff-tree', '-p', '--full-index', ...PLAIN_PATCH, '--end-of-options', from, to];
    return git.read(args, { cwd: git.commonDir, limitBytes, cut: true });
  }

  protected cell(run: RunInCell): CellGit {
    return new CellGit(run, this.ref, this.cellEnv);
  }

  /** Keeps a commit that is on no branch any more from being collected. */
  protected async keep(commit: string): Promise<string> {
    const { git, feature, worker } = this.parts;
    const ref = `refs/mahabharatha/${feature}/rescued/worker-${worker}-${commit.slice(0, 12)}`;
    const known = await findCommit(git, ref);
    if (known === commit) return ref;
    if (known !== undefined) throw new HotcellError('FLEET_GIT', `${ref} is something else already`);
    await moveRef(git, { ref, to: commit, from: undefined, why: 'keep what a worker left' });
    return ref;
  }
}
