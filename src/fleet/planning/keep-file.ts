import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { HotcellError } from '../../core/errors.ts';

/** Undefined where there is none. */
export async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Replaces a file as a whole, so that nobody ever reads half of it.
 * SECURITY: a repository may bring links along; what we write stays below its root.
 */
export async function replaceFile(root: string, path: string, text: string): Promise<void> {
  const folder = dirname(path);
  await requirePlain(root, folder);
  await mkdir(folder, { recursive: true });
  await requirePlain(root, folder);
  const partial = join(folder, `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  try {
    await using file = await open(partial, 'wx', 0o644);
    await file.writeFile(text);
    await file.sync();
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

/** Makes a file where there is none; says whether it did. */
export async function makeFile(root: string, path: string, text: string): Promise<boolean> {
  if ((await readText(path)) !== undefined) return false;
  await replaceFile(root, path, text);
  return true;
}

/** As far as the folder is there, it is where its name says. */
async function requirePlain(root: string, folder: string): Promise<void> {
  const top = await realpath(root);
  let at = folder;
  for (;;) {
    const real = await realpath(at).catch(() => undefined);
    if (real === undefined && at !== root) {
      at = dirname(at);
      continue;
    }
    if (real === join(top, relative(root, at))) return;
    throw new HotcellError('INVALID_REQUEST', `${relative(root, at)} is a link that leads elsewhere`, {
      hint: 'Put a folder in its place.',
    });
  }
}
