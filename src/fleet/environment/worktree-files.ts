import { constants } from 'node:fs';
import { lchown, lstat, mkdir, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { CellOwner } from '../../core/cell.ts';
import { matchesPathPattern } from './path-match.ts';
import { readPlainFile, type PlainFile } from './plain-file.ts';
import type { Secret } from './secret.ts';

export interface CopyIgnoredOptions {
  /** Of the repository. */
  readonly root: string;
  /** Precondition: no cell has seen it yet. */
  readonly worktree: string;
  /** Relative to the root, with `*` and `**`. */
  readonly patterns: readonly string[];
  /** What git does not track, as paths relative to the root. */
  listIgnored(): Promise<readonly string[]>;
  /** Whom files are given to, where the caller may give files away. */
  readonly owner?: CellOwner | undefined;
  /** SECURITY: a file with one of these in it is not copied. */
  readonly withhold?: readonly Secret[];
  /** Of one file. */
  readonly mostBytes?: number;
  readonly mostTotalBytes?: number;
}

export interface CopiedFiles {
  readonly copied: readonly string[];
  readonly left: readonly { readonly path: string; readonly why: string }[];
}

const MiB = 1024 * 1024;
/** At the root: the state of the fleet, and the worktrees themselves. */
const OURS: readonly string[] = ['.mahabharatha', '.mahabharatha-worktrees'];
const AS_NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Gives a new worktree copies of files that git does not have, such as `.env`. What is there already stays as it is. */
export async function copyIgnoredFiles(options: CopyIgnoredOptions): Promise<CopiedFiles> {
  const { patterns, mostTotalBytes = 100 * MiB } = options;
  const copied: string[] = [];
  const left: { path: string; why: string }[] = [];
  if (patterns.length === 0) return { copied, left };
  let bytes = 0;
  for (const path of [...new Set(await options.listIgnored())].toSorted()) {
    if (!isPlainPath(path) || !patterns.some((pattern) => matchesPathPattern(pattern, path))) continue;
    // oxlint-disable-next-line no-await-in-loop -- They share a bound.
    const done = await copyOne(path, options, mostTotalBytes - bytes);
    if (typeof done === 'string') left.push({ path, why: done });
    else {
      copied.push(path);
      bytes += done;
    }
  }
  return { copied, left };
}

function isPlainPath(path: string): boolean {
  const parts = path.split('/');
  return (
    !path.includes('\0') &&
    parts.every((part) => part !== '' && part !== '.' && part !== '..' && !/^\.git$/i.test(part)) &&
    !OURS.includes(parts[0] ?? '')
  );
}

/** The number of bytes, or why not. */
async function copyOne(path: string, options: CopyIgnoredOptions, room: number): Promise<number | string> {
  const { root, worktree, mostBytes = 10 * MiB, withhold = [], owner } = options;
  if (!(await isWayClear(root, path))) return 'a folder on the way is a link';
  const file = await readPlainFile(join(root, path), mostBytes);
  const why = whyNot(file, room, withhold);
  if (file.kind !== 'file' || why !== undefined) return why ?? 'it is gone';
  try {
    if (!(await makeWay(worktree, path, owner))) return 'a folder on the way is a link in the worktree';
    await writeNew(join(worktree, path), file, owner);
    return file.bytes.length;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    return code === 'EEXIST' || code === 'ELOOP'
      ? 'the worktree has one already'
      : `it was not written (${code})`;
  }
}

function whyNot(file: PlainFile, room: number, withhold: readonly Secret[]): string | undefined {
  if (file.kind === 'missing') return 'it is gone';
  if (file.kind === 'refused') return file.why;
  if (file.bytes.length > room) return 'all files together are too large';
  const tells = withhold.some((secret) => file.bytes.includes(secret.reveal()));
  return tells ? 'it has a key in it that only the gate may know' : undefined;
}

/** SECURITY: every folder on the way must be one, or the file would be one of another place. */
async function isWayClear(base: string, path: string): Promise<boolean> {
  const checks = foldersOf(path).map((folder) => lstat(join(base, folder)).catch(() => undefined));
  return (await Promise.all(checks)).every((info) => info?.isDirectory() === true);
}

async function makeWay(base: string, path: string, owner: CellOwner | undefined): Promise<boolean> {
  for (const folder of foldersOf(path)) {
    const target = join(base, folder);
    // oxlint-disable-next-line no-await-in-loop -- Each is in the one before.
    const info = await lstat(target).catch(() => undefined);
    if (info?.isDirectory() === true) continue;
    if (info !== undefined) return false;
    // oxlint-disable-next-line no-await-in-loop -- As above.
    await mkdir(target, { mode: 0o700 });
    // oxlint-disable-next-line no-await-in-loop -- As above.
    if (owner !== undefined) await lchown(target, owner.uid, owner.gid);
  }
  return true;
}

/** `a/b/c` is in `a` and `a/b`. */
function foldersOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

async function writeNew(
  target: string,
  { bytes, mode }: Extract<PlainFile, { kind: 'file' }>,
  owner: CellOwner | undefined,
): Promise<void> {
  const handle = await open(target, AS_NEW_FILE, 0o600);
  try {
    await handle.writeFile(bytes);
    if (owner !== undefined) await handle.chown(owner.uid, owner.gid);
    // Of the mode only what the owner may: others of this machine have no business here.
    await handle.chmod(mode & 0o700);
  } catch (error) {
    // Half a file is worse than none.
    await unlink(target).catch(() => {});
    throw error;
  } finally {
    await handle.close();
  }
}
