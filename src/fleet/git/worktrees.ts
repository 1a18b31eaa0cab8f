import { lstat, mkdir, open, readFile, readdir, realpath, rm, rmdir, writeFile } from 'node:fs/promises';
import { constants } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { lineOf, splitNul, type HostGit, type Settings } from './host-git.ts';
import { exists, removeTree } from './hostile-tree.ts';
import { findCommit, moveRef, toRef } from './refs.ts';

export interface WorktreeRequest {
  readonly path: string;
  /** Kept where it is if it exists. */
  readonly branch: string;
  /** Where the branch begins if it does not. */
  readonly commit: string;
  /** `user`: programs of the user's configuration rewrite files (LFS and the like); `none`: files are as they were committed. */
  readonly filters?: 'user' | 'none';
}

/** A linked worktree as git keeps it below `.git/worktrees`. */
interface Registration {
  readonly folder: string;
  readonly isComplete: boolean;
  readonly head: string;
}

/** Whatever a crash left of it: afterwards there is a linked worktree at `path`, and its branch is `branch`. */
export async function ensureWorktree(git: HostGit, request: WorktreeRequest): Promise<void> {
  const ref = toRef(request.branch);
  if ((await findCommit(git, ref)) === undefined)
    await moveRef(git, { ref, to: request.commit, from: undefined, why: 'begin' });
  await mkdir(dirname(request.path), { recursive: true });
  const path = await toRealPath(request.path);
  const found = await findRegistration(git, path);
  if (found?.isComplete === true && (await pointsTo(path, found.folder))) {
    if (found.head !== `ref: ${ref}`)
      await git.run(['symbolic-ref', 'HEAD', ref], { env: { GIT_DIR: found.folder } });
    return;
  }
  await removeWorktree(git, path);
  const settings = request.filters === 'user' ? {} : await withoutFilters(git);
  await git.run(['worktree', 'add', '--quiet', '--', path, request.branch], { settings });
}

/**
 * Folder and registration, whatever is in the folder and whatever git thinks of it.
 * SECURITY: git itself is not asked: to see whether the worktree is clean it would look into it.
 */
export async function removeWorktree(git: HostGit, path: string): Promise<void> {
  const real = await toRealPath(path);
  await removeTree(git, real);
  const found = await findRegistration(git, real);
  const folders = [...(found === undefined ? [] : [found.folder]), ...(await findUnfinished(git, real))];
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
  await rmdir(join(git.commonDir, 'worktrees')).catch(() => {});
}

/** The git folder of a linked worktree, where its HEAD and its index are. */
export async function findGitFolder(git: HostGit, path: string): Promise<string | undefined> {
  return (await findRegistration(git, await toRealPath(path)))?.folder;
}

/**
 * Makes the index of a linked worktree agree with a commit. The files are not looked at.
 * Needed because commits of cells arrive without the index: `git status` there would show all of them as undone.
 */
export async function setIndex(git: HostGit, path: string, commit: string): Promise<void> {
  const folder = await findGitFolder(git, path);
  if (folder === undefined) return;
  await rm(join(folder, 'index.lock'), { force: true });
  await git.run(['read-tree', commit], { cwd: folder, env: { GIT_DIR: folder } });
}

/** The working tree that has a branch checked out. */
export async function findCheckout(git: HostGit, branch: string): Promise<string | undefined> {
  const ref = toRef(branch);
  const list = splitRecords(await git.run(['worktree', 'list', '--porcelain', '-z']));
  return list
    .find((lines) => lines.includes(`branch ${ref}`))
    ?.find((line) => line.startsWith('worktree '))
    ?.slice('worktree '.length);
}

/** Makes a folder that `git status` of the user does not show. */
export async function hideFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  await writeFile(join(path, '.gitignore'), '*\n', { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}

/** Turns every program off that the user's configuration has for files that are checked out. */
async function withoutFilters(git: HostGit): Promise<Settings> {
  const names = await findNames(git, 'filter');
  const off = names.flatMap((name) => [
    [`filter.${name}.smudge`, ''] as const,
    [`filter.${name}.clean`, ''] as const,
    [`filter.${name}.process`, ''] as const,
    [`filter.${name}.required`, 'false'] as const,
  ]);
  return { 'core.autocrlf': 'false', 'core.eol': 'lf', ...Object.fromEntries(off) };
}

/** The middle parts of settings such as `filter.<name>.smudge`. */
export async function findNames(git: HostGit, section: 'filter' | 'merge'): Promise<string[]> {
  const { stdout } = await git.attempt([
    'config',
    '-z',
    '--name-only',
    '--get-regexp',
    `^${section}\\..+\\..+$`,
  ]);
  const names = splitNul(stdout).map((key) => key.slice(section.length + 1, key.lastIndexOf('.')));
  return [...new Set(names)];
}

async function findRegistration(git: HostGit, path: string): Promise<Registration | undefined> {
  const all = join(git.commonDir, 'worktrees');
  const ids = await readdir(all).catch(() => []);
  const pointers = await Promise.all(ids.map((id) => readText(join(all, id, 'gitdir'))));
  const index = pointers.findIndex(
    (pointer) => pointer !== undefined && lineOf(pointer) === join(path, '.git'),
  );
  const id = ids[index];
  if (id === undefined) return undefined;
  const folder = join(all, id);
  const head = lineOf((await readText(join(folder, 'HEAD'))) ?? '');
  // Git writes the index last, and holds the lock until then.
  const isComplete = (await exists(join(folder, 'index'))) && !(await isBeingMade(folder));
  return { folder, isComplete: isComplete && head !== '' && (await exists(join(folder, 'commondir'))), head };
}

/** Registrations by our name that were cut off before they said where they belong. */
async function findUnfinished(git: HostGit, path: string): Promise<string[]> {
  const all = join(git.commonDir, 'worktrees');
  const name = basename(path);
  const ids = await readdir(all).catch(() => []);
  const ours = ids.filter((id) => id.startsWith(name) && /^\d*$/.test(id.slice(name.length)));
  const pointers = await Promise.all(ours.map((id) => readText(join(all, id, 'gitdir'))));
  return ours.filter((_, index) => (pointers[index] ?? '') === '').map((id) => join(all, id));
}

async function isBeingMade(folder: string): Promise<boolean> {
  return (await readText(join(folder, 'locked')))?.trim() === 'initializing';
}

/** SECURITY: a cell without a file system of its own could have put anything there, so links are not followed. */
async function pointsTo(path: string, folder: string): Promise<boolean> {
  if (!(await lstat(path).catch(() => undefined))?.isDirectory()) return false;
  await using file = await open(
    join(path, '.git'),
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  ).catch(() => undefined);
  if (file === undefined) return false;
  if (!(await file.stat()).isFile()) return false;
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(8192) });
  return lineOf(buffer.toString('utf8', 0, bytesRead)) === `gitdir: ${folder}`;
}

async function readText(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}

/** As git writes it down. SECURITY: the last part is not resolved, it may be a link. */
async function toRealPath(path: string): Promise<string> {
  const parent = await realpath(dirname(path)).catch(() => dirname(path));
  return join(parent, basename(path));
}

function splitRecords(output: string): string[][] {
  return output.split('\0\0').map((record) => splitNul(record));
}
