import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { splitNul, type HostGit } from './host-git.ts';

export interface Advance {
  /** A working tree that has the branch checked out. */
  readonly checkout: string;
  /** Where the branch is, and where it shall go. */
  readonly from: string;
  readonly to: string;
}

/**
 * Files of the user that a working tree cannot keep when its branch advances: changed ones that the way there changes,
 * staged or not, and untracked ones, also ignored, where it puts something. All others stay as they are.
 */
export async function findFilesInTheWay(git: HostGit, { checkout, from, to }: Advance): Promise<string[]> {
  const range = ['--no-renames', '-r', '-z', from, to];
  const touched = splitNul(await git.run(['diff-tree', '--name-only', ...range]));
  const added = splitNul(await git.run(['diff-tree', '--name-only', '--diff-filter=A', ...range]));
  const removed = splitNul(await git.run(['diff-tree', '--name-only', '--diff-filter=D', ...range]));
  const changed = await listChanged(git, checkout);
  const files = new Set(touched);
  const withFolders = new Set(touched.flatMap((path) => [path, ...foldersOf(path)]));
  const found = changed
    .filter(
      ({ path, isUnmerged }) =>
        isUnmerged || withFolders.has(path) || foldersOf(path).some((folder) => files.has(folder)),
    )
    .map(({ path }) => path);
  const untracked = await listUntracked(git, { checkout, added, known: new Set(removed) });
  return [...new Set([...found, ...untracked])].toSorted();
}

async function listChanged(git: HostGit, cwd: string): Promise<{ path: string; isUnmerged: boolean }[]> {
  const args = ['status', '--porcelain', '-z', '--no-renames', '--untracked-files=no'];
  const entries = splitNul(await git.run([...args, '--ignore-submodules=all'], { cwd }));
  return entries.map((entry) => ({
    path: entry.slice(3),
    // Of these git would refuse any merge.
    isUnmerged: /^(?:U.|.U|AA|DD)/.test(entry),
  }));
}

interface Additions {
  readonly checkout: string;
  /** Files that the branch does not have yet. */
  readonly added: readonly string[];
  /** Files that it will not have any more: a folder may take the place of one. */
  readonly known: ReadonlySet<string>;
}

/** What is staged is not looked for: it counts as changed. */
async function listUntracked(git: HostGit, { checkout, added, known }: Additions): Promise<string[]> {
  const found: string[] = [];
  const folders = new Set(added.flatMap(foldersOf));
  for (const path of [...folders, ...added]) {
    const there = await lstat(join(checkout, path)).catch(() => undefined);
    if (there === undefined) continue;
    if (!there.isDirectory()) {
      if (!known.has(path)) found.push(path);
    } else if (!folders.has(path)) {
      // Everything that git does not know of in there, ignored or not.
      const list = ['--literal-pathspecs', 'ls-files', '--others', '-z', '--', path];
      found.push(...splitNul(await git.run(list, { cwd: checkout })));
    }
  }
  return found;
}

/** Every folder that leads to a file. */
function foldersOf(path: string): string[] {
  const folder = dirname(path);
  return folder === '.' ? [] : [folder, ...foldersOf(folder)];
}
