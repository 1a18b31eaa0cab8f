import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { IDEFile } from '../../client/workspace-sync.ts';
import { messageOf } from '../../core/errors.ts';
import { usageError } from '../exit-codes.ts';

export interface Collected {
  readonly files: readonly (IDEFile & { readonly size: number })[];
  /** Links and whatever else is no plain file. */
  readonly leftOut: readonly string[];
}

/** What can be made again, or is none of the cell's business. */
export const USUALLY_SKIPPED: readonly string[] = ['node_modules', '.git', '.venv'];

/** All plain files below a folder, by their path below it. Links are not followed: they may lead to what is not meant. */
export async function collectFiles(folder: string, skipped: ReadonlySet<string>): Promise<Collected> {
  const files: (IDEFile & { size: number })[] = [];
  const leftOut: string[] = [];
  const folders = [''];
  for (let below = folders.pop(); below !== undefined; below = folders.pop()) {
    for (const entry of await entriesOf(join(folder, below))) {
      if (skipped.has(entry.name)) continue;
      const path = below === '' ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) files.push(await toFile(join(folder, path), path));
      else leftOut.push(path);
    }
  }
  return { files, leftOut };
}

/** One file, read when it is needed. */
export async function toFile(from: string, path: string): Promise<IDEFile & { size: number }> {
  const { mode, size } = await stat(from);
  return { path, mode: mode & 0o777, size, content: () => readFile(from) };
}

async function entriesOf(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    throw usageError(
      `cannot read ${folder}: ${messageOf(error)}`,
      'Name a folder that exists and that you may read.',
    );
  }
}
