import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CellFolder, CellOwner } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import { toAuthorVariables } from './author.ts';
import type { RunInCell } from './cell-git.ts';
import { splitNul } from './host-git.ts';
import { giveTree } from './hostile-tree.ts';
import { PlaceGit, type PlaceGitParts, type Settled, type TakenCommits } from './place-git.ts';
import { deleteRef, findCommit, isAncestor, moveRef, requireCommit } from './refs.ts';
import { ensureWorktree, findGitFolder, removeWorktree } from './worktrees.ts';

/** What has been accepted of a worker that moves its branch itself. */
export function acceptedRef(feature: string, worker: number): string {
  return `refs/mahabharatha/${feature}/accepted/worker-${worker}`;
}

/**
 * Git for a worker without a cell: it works in the linked worktree, and its commits are in the user's repository at once.
 * There is no boundary here. What has been accepted is remembered in a ref beside the branch, because the agent moves the
 * branch itself.
 */
export class LinkedGit extends PlaceGit {
  readonly folders: readonly CellFolder[];
  readonly env: Readonly<Record<string, string>>;
  /** Without the repository: that is the user's, and all workers write to it. */
  protected readonly disk: readonly string[];
  readonly workdir: string;
  protected readonly cellEnv = {};

  constructor(parts: PlaceGitParts) {
    const { worktree, git, feature, worker } = parts;
    super(parts, acceptedRef(feature, worker));
    this.disk = [worktree];
    this.workdir = worktree;
    this.env = toAuthorVariables(parts.author);
    this.folders = [
      { name: 'workspace', folder: worktree, at: worktree, writable: true },
      { name: 'repository', folder: git.commonDir, at: git.commonDir, writable: true },
    ];
  }

  async prepare(owner?: CellOwner): Promise<void> {
    const { git, worktree, branch, start } = this.parts;
    await ensureWorktree(git, { path: worktree, branch, commit: start, filters: 'user' });
    if ((await findCommit(git, this.accepted)) === undefined)
      await this.#accept(undefined, await this.#tip());
    if (owner !== undefined) await giveTree(git, worktree, owner);
  }

  async settle(run: RunInCell): Promise<Settled> {
    const { git } = this.parts;
    await this.clearWay();
    const cell = this.cell(run);
    const accepted = await this.head();
    const left = (await cell.findHead()) ?? accepted;
    const patch = await cell.patch();
    const tips = [...new Set([left, await this.#tip()])];
    const lost = await Promise.all(tips.map((tip) => isAncestor(git, tip, accepted)));
    const refs: string[] = [];
    for (const commit of tips.filter((_, index) => lost[index] === false)) {
      refs.push(await this.keep(commit));
    }
    await cell.resetTo(accepted);
    const [ref] = refs;
    return { ...patch, ...(ref === undefined ? {} : { ref }) };
  }

  async moveTo(run: RunInCell, commit: string): Promise<void> {
    await this.clearWay();
    const from = await this.head();
    const tip = await this.#tip();
    if (!(await isAncestor(this.parts.git, tip, commit))) await this.keep(tip);
    await this.#accept(from, commit);
    await this.cell(run).resetTo(commit);
  }

  async takeCommits(_run: RunInCell, accept?: (taken: TakenCommits) => void): Promise<TakenCommits> {
    const { git } = this.parts;
    const from = await this.head();
    const commit = await this.#tip();
    if (commit === from) return { commit, files: [] };
    if (!(await isAncestor(git, from, commit)))
      throw new HotcellError(
        'FLEET_GIT',
        `commits of the worker were refused: ${commit} does not continue ${from}: history was rewritten`,
        { hint: 'The task can be tried again from the last commit that was accepted.' },
      );
    const files = await git.run(['diff-tree', '-r', '-z', '--name-only', '--no-renames', from, commit]);
    const taken = { commit, files: splitNul(files) };
    accept?.(taken);
    await this.#accept(from, commit);
    return taken;
  }

  removeFiles(): Promise<void> {
    return removeWorktree(this.parts.git, this.parts.worktree);
  }

  override async remove(): Promise<void> {
    const { git } = this.parts;
    await super.remove();
    if ((await findCommit(git, this.accepted)) !== undefined) await deleteRef(git, this.accepted);
  }

  #accept(from: string | undefined, to: string): Promise<void> {
    return moveRef(this.parts.git, { ref: this.accepted, to, from, why: 'accept commits of the worker' });
  }

  #tip(): Promise<string> {
    return requireCommit(this.parts.git, this.ref);
  }

  /** What a killed git has left. Only of this worktree and branch: the rest of the repository is the user's. */
  protected async clearWay(): Promise<void> {
    const { git, worktree } = this.parts;
    const folder = await findGitFolder(git, worktree);
    const locks = [
      join(git.commonDir, `${this.ref}.lock`),
      ...(folder === undefined ? [] : [join(folder, 'index.lock'), join(folder, 'HEAD.lock')]),
    ];
    await Promise.all(locks.map((lock) => rm(lock, { force: true })));
  }
}
