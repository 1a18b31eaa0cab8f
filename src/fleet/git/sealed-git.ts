import { closeSync, openSync, writeSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { WORKSPACE_IN_CELL, type CellFolder, type CellOwner } from '../../core/cell.ts';
import { HotcellError, messageOf } from '../../core/errors.ts';
import type { BaseStore } from './base-store.ts';
import type { CellGit, RunInCell } from './cell-git.ts';
import { lineOf, toVariables, type HostGit } from './host-git.ts';
import { exists, giveTree, removeTree } from './hostile-tree.ts';
import { PlaceGit, type PlaceGitParts, type Settled, type TakenCommits } from './place-git.ts';
import {
  LOCKS,
  remakePrivateGit,
  restorePrivateGit,
  restoreSettings,
  writePrivateGit,
  type PrivateGitPlan,
} from './private-git.ts';
import { findCommit, isAncestor, moveRef } from './refs.ts';
import { PACK_BYTES, takeIn, type Arrival } from './take-in.ts';
import { ensureWorktree, removeWorktree, setIndex } from './worktrees.ts';

/** Where a cell sees what is its own. */
export interface InsidePaths {
  readonly workspace: string;
  readonly git: string;
  readonly objects: string;
}

const INSIDE: InsidePaths = { workspace: WORKSPACE_IN_CELL, git: '/git', objects: '/repo/objects' };

export interface SealedGitParts extends PlaceGitParts {
  /** One for all workers of the feature. */
  readonly base: BaseStore;
  /** For the private git folder and what belongs to it. */
  readonly folder: string;
  readonly inside?: InsidePaths;
}

/**
 * Git for a worker in a cell. It has a git folder of its own; all it sees of the user's repository is the base store.
 * SECURITY: the host never runs git in the worktree or in the private folder once a cell has had them: their configuration,
 * attributes and nested repositories would make it run programs. What the cell has comes out through its stdout.
 */
export class SealedGit extends PlaceGit<SealedGitParts> {
  readonly folders: readonly CellFolder[];
  readonly env: Readonly<Record<string, string>>;
  protected readonly disk: readonly string[];
  readonly workdir: string;
  protected readonly cellEnv: Readonly<Record<string, string>>;
  readonly #inside: InsidePaths;
  readonly #private: string;
  readonly #pointer: string;

  constructor(parts: SealedGitParts) {
    super(parts);
    this.#inside = parts.inside ?? INSIDE;
    this.#private = parts.room?.git ?? join(parts.folder, 'git');
    this.#pointer = join(parts.folder, 'gitfile');
    this.disk = [parts.worktree, this.#private];
    this.workdir = this.#inside.workspace;
    // Folders that seem to belong to somebody else, as they do on some drivers, are no reason for git to refuse.
    this.env = toVariables({ 'safe.directory': '*' });
    const { workspace, git, objects } = this.#inside;
    this.cellEnv = {
      GIT_DIR: git,
      GIT_WORK_TREE: workspace,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
    };
    this.folders = [
      { name: 'workspace', folder: parts.room?.tree ?? parts.worktree, at: workspace, writable: true },
      { name: 'gitfile', folder: this.#pointer, at: join(workspace, '.git') },
      { name: 'git', folder: this.#private, at: git, writable: true },
      { name: 'objects', folder: parts.base.objects, at: objects },
    ];
  }

  async prepare(owner?: CellOwner): Promise<void> {
    const { git, base, branch, worktree, start, folder } = this.parts;
    await ensureWorktree(git, { path: worktree, branch, commit: start, filters: 'none' });
    await base.bring(start);
    await setIndex(git, worktree, await this.head());
    await mkdir(folder, { recursive: true });
    await writeFile(`${this.#pointer}.new`, `gitdir: ${this.#inside.git}\n`);
    await rename(`${this.#pointer}.new`, this.#pointer);
    await this.#makePrivate();
    if (owner === undefined) return;
    for (const path of [worktree, this.#private, this.#pointer]) {
      await giveTree(git, path, owner);
    }
  }

  async #makePrivate(): Promise<void> {
    if (await exists(this.#private)) return;
    const fresh = `${this.#private}.new`;
    await rm(fresh, { recursive: true, force: true });
    await writePrivateGit(fresh, await this.#plan());
    await rename(fresh, this.#private);
  }

  async settle(run: RunInCell): Promise<Settled> {
    const head = await this.head();
    const settled = await this.#rescue(run, head);
    await this.#bringTo(run, head, restorePrivateGit);
    return settled;
  }

  /** As much as can be had: nothing that a cell does may keep its worker from going on. */
  async #rescue(run: RunInCell, head: string): Promise<Settled> {
    const cell = this.cell(run);
    try {
      await run(['rm', '-f', '--', ...LOCKS.map((lock) => join(this.#inside.git, lock))]);
      const left = await cell.findHead();
      if (left === undefined) return {};
      const patch = await cell.patch();
      try {
        const ref = left === head ? undefined : await this.#keepLeft(run, left, head);
        return { ...patch, ...(ref === undefined ? {} : { ref }) };
      } catch (error) {
        return { ...patch, problem: messageOf(error) };
      }
    } catch (error) {
      return { problem: messageOf(error) };
    }
  }

  async #keepLeft(run: RunInCell, left: string, head: string): Promise<string | undefined> {
    const { git, base } = this.parts;
    if ((await findCommit(git, left)) === undefined)
      await this.#carry(run, left, { continues: undefined, since: await base.commit() });
    else if (await isAncestor(git, left, head)) return undefined;
    return this.keep(left);
  }

  async moveTo(run: RunInCell, commit: string): Promise<void> {
    const { git, base } = this.parts;
    await base.bring(commit);
    const from = await this.head();
    if (!(await isAncestor(git, from, commit))) await this.keep(from);
    await moveRef(git, { ref: this.ref, to: commit, from, why: 'next level' });
    await this.#bringTo(run, commit);
  }

  /** Worktree and branch are at `commit`, after `mend`; if that fails, in a git folder that was made anew. */
  async #bringTo(run: RunInCell, commit: string, mend?: typeof restorePrivateGit): Promise<void> {
    const { git, worktree } = this.parts;
    const cell = this.cell(run);
    const plan = await this.#plan();
    try {
      await mend?.(run, plan);
      await this.#reset(cell, commit);
    } catch (error) {
      requireBroken(error);
      await remakePrivateGit(run, plan);
      await this.#reset(cell, commit);
    }
    await setIndex(git, worktree, commit);
  }

  protected async clearWay(run: RunInCell): Promise<void> {
    await restoreSettings(run, await this.#plan());
  }

  async takeCommits(run: RunInCell, accept?: (taken: TakenCommits) => void): Promise<TakenCommits> {
    const { git, worktree } = this.parts;
    const from = await this.head();
    const commit = (await this.cell(run).findHead()) ?? from;
    if (commit === from) return { commit, files: [] };
    const files = await this.#carry(run, commit, {
      continues: from,
      since: from,
      accept: (names) => accept?.({ commit, files: names }),
    });
    accept?.({ commit, files });
    await moveRef(git, { ref: this.ref, to: commit, from, why: 'commits of the worker' });
    // Taken is taken: the index only makes `git status` agree, and `prepare` sets it again.
    await setIndex(git, worktree, commit).catch(() => {});
    return { commit, files };
  }

  async #carry(
    run: RunInCell,
    commit: string,
    check: Pick<Arrival, 'continues' | 'since' | 'accept'>,
  ): Promise<string[]> {
    const { git, base, folder } = this.parts;
    const scratch = join(folder, 'arrival');
    await mkdir(scratch, { recursive: true });
    const pack = join(scratch, 'commits.pack');
    try {
      await this.#download(run, `${commit}\n^${await base.commit()}\n`, pack);
      return await takeIn({ git, base, scratch, pack, commit, ...check });
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  }

  /** Straight to the disk: a cell must not be able to fill the memory of the host. */
  async #download(run: RunInCell, revisions: string, path: string): Promise<void> {
    const file = openSync(path, 'w', 0o600);
    let room = PACK_BYTES;
    try {
      await this.cell(run).run(
        ['pack-objects', '--revs', '--stdout', '--thin', '--delta-base-offset', '-q'],
        {
          input: Buffer.from(revisions),
          limitBytes: PACK_BYTES,
          onStdout: (bytes) => {
            room -= bytes.length;
            // What is cut off makes a pack that is refused.
            if (room >= 0) writeAll(file, bytes);
          },
        },
      );
    } catch (error) {
      if (!(error instanceof HotcellError && error.code === 'FILE_TOO_LARGE')) throw error;
      throw new HotcellError(
        'FLEET_GIT',
        `commits of the worker were refused: more than ${PACK_BYTES} bytes`,
        {
          cause: error,
        },
      );
    } finally {
      closeSync(file);
    }
  }

  async removeFiles(): Promise<void> {
    await removeWorktree(this.parts.git, this.parts.worktree);
    await removeTree(this.parts.git, this.parts.folder);
  }

  async #reset(cell: CellGit, commit: string): Promise<void> {
    if (!(await cell.has(commit))) {
      const { git, base } = this.parts;
      const input = await git.read(['pack-objects', '--revs', '--stdout', '--thin', '-q'], {
        input: `${commit}\n^${await base.commit()}\n`,
        limitBytes: PACK_BYTES,
      });
      await cell.run(['index-pack', '--stdin', '--fix-thin'], { input });
    }
    await cell.resetTo(commit);
  }

  async #plan(): Promise<PrivateGitPlan> {
    const { git, base, branch, author } = this.parts;
    return {
      git: this.#inside.git,
      objects: this.#inside.objects,
      branch,
      author,
      format: await git.run(['rev-parse', '--show-object-format']),
      shallow: await base.shallow(),
      exclude: await readExcludes(git),
    };
  }
}

/** The user's own ignored names, which are in no `.gitignore` of the repository. */
async function readExcludes(git: HostGit): Promise<Buffer> {
  const set = lineOf((await git.attempt(['config', '--type=path', '--get', 'core.excludesFile'])).stdout);
  const home = git.env['XDG_CONFIG_HOME'] ?? join(git.env['HOME'] ?? '/', '.config');
  const parts = await Promise.all(
    [set === '' ? join(home, 'git/ignore') : set, join(git.commonDir, 'info/exclude')].map((path) =>
      readFile(path).catch(() => Buffer.alloc(0)),
    ),
  );
  return Buffer.concat(parts.flatMap((part) => [part, Buffer.from('\n')]));
}

/** A cell that is gone says nothing about the git folder. */
function requireBroken(error: unknown): void {
  if (!(error instanceof HotcellError && error.code === 'FLEET_GIT')) throw error;
}

function writeAll(file: number, bytes: Uint8Array): void {
  let at = 0;
  while (at < bytes.length) at += writeSync(file, bytes, at);
}
