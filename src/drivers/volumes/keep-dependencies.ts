import type { Dirent } from 'node:fs';
import { readdir, rm, rmdir } from 'node:fs/promises';

/** Folders that take long to make again and hold nothing of the user's own. */
const DEPENDENCIES = new Set(['node_modules', '.venv']);
/** In the home folder: what package managers have fetched. */
const CACHES = new Set(['.npm', '.cache']);
const HOME = '.home';
/** No project has its packages deeper than this; what somebody nests to annoy us is not searched. */
const DEEPEST = 32;

/**
 * Removes everything from a volume but dependencies and caches; tells whether anything is left. Nobody else uses the volume
 * at that time, and no link in it is followed: entries are removed by what they are themselves.
 */
export async function keepDependencies(folder: string): Promise<boolean> {
  return keepSome(toBytes(folder), async (entry, path) => {
    if (entry.name === HOME) return keepSome(path, (inner) => Promise.resolve(CACHES.has(inner.name)));
    return !entry.name.startsWith('.') && keepBelow(path, 1);
  });
}

/** Nobody has ever worked here: there are folders at most. */
export async function holdsNoFiles(folder: string): Promise<boolean> {
  // What cannot be looked through was made by somebody.
  return holdsOnlyFolders(toBytes(folder), 0).catch(() => false);
}

async function holdsOnlyFolders(folder: string, depth: number): Promise<boolean> {
  if (depth > DEEPEST) return false;
  for (const entry of await readdir(toPath(folder), { withFileTypes: true, encoding: 'latin1' })) {
    if (!entry.isDirectory() || !(await holdsOnlyFolders(`${folder}/${entry.name}`, depth + 1))) return false;
  }
  return true;
}

/** Packages of a workspace may have dependencies of their own, so at any depth. */
async function keepBelow(folder: string, depth: number): Promise<boolean> {
  if (depth > DEEPEST) return false;
  const kept = await keepSome(
    folder,
    async (entry, path) => DEPENDENCIES.has(entry.name) || (await keepBelow(path, depth + 1)),
  );
  if (!kept) await rmdir(toPath(folder)).catch(() => {});
  return kept;
}

/** Removes all entries of a folder but the folders that are wanted. */
async function keepSome(
  folder: string,
  isWanted: (entry: Dirent, path: string) => Promise<boolean>,
): Promise<boolean> {
  let kept = false;
  for (const entry of await readdir(toPath(folder), { withFileTypes: true, encoding: 'latin1' })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory() && (await isWanted(entry, path))) kept = true;
    else await rm(toPath(path), { recursive: true, force: true });
  }
  return kept;
}

/** Names are bytes, valid UTF-8 or not: here every byte is one character. */
function toBytes(path: string): string {
  return Buffer.from(path).toString('latin1');
}

function toPath(bytes: string): Buffer {
  return Buffer.from(bytes, 'latin1');
}
