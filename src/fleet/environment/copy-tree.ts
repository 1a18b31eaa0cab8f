import { constants, type Stats } from 'node:fs';
import {
  access,
  chmod,
  copyFile,
  lchown,
  lutimes,
  mkdir,
  open,
  readdir,
  readlink,
  symlink,
  type FileHandle,
} from 'node:fs/promises';
import { join } from 'node:path';
import type { CellOwner } from '../../core/cell.ts';

export interface CopyTreeOptions {
  /** A folder. SECURITY: programs may change it meanwhile, in any way. */
  readonly from: string;
  /** Is made. SECURITY: in a folder that no cell can write to. */
  readonly to: string;
  /** The caller's if not given. */
  readonly owner?: CellOwner | undefined;
  readonly mostBytes: number;
  readonly mostEntries: number;
}

const DEEPEST = 100;
const AT_ONCE = 16;
/** Open files are seen here by name, so that nothing is opened but what is in a folder that is open. */
const OPEN_FILES = '/proc/self/fd';
const AS_FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Not waiting, because the other end of a FIFO may never come. */
const AS_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const AS_COPY = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE;

/** Is there a way to open files relative to folders? */
export async function canCopyTrees(): Promise<boolean> {
  return access(OPEN_FILES).then(
    () => true,
    () => false,
  );
}

/**
 * Copies a folder as `cp -a --reflink=auto` would, and throws when it is too large. Links are copied as links; sockets,
 * pipes and devices are left out; nobody gets rights beyond those of owner, group and others.
 * SECURITY: no link of the source is ever followed, whenever it appears: each name is opened alone, in its open folder.
 */
export async function copyTree(options: CopyTreeOptions): Promise<void> {
  await new TreeCopy(options).copyFolder(options.from, options.to, 0);
}

class TreeCopy {
  readonly #options: CopyTreeOptions;
  /** Said always, because a copy of a file otherwise belongs to whom the file belongs to. */
  readonly #owner: CellOwner;
  #bytes = 0;
  #entries = 0;

  constructor(options: CopyTreeOptions) {
    this.#options = options;
    this.#owner = options.owner ?? { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
  }

  async copyFolder(from: string, to: string, depth: number): Promise<void> {
    if (depth > DEEPEST) throw new RangeError('folders are too deep to be copied');
    await using folder = await open(from, AS_FOLDER);
    const info = await folder.stat();
    await mkdir(to, { mode: 0o700 });
    const inside = join(OPEN_FILES, String(folder.fd));
    const entries = await readdir(inside, { withFileTypes: true });
    this.#entries += entries.length;
    if (this.#entries > this.#options.mostEntries) throw new RangeError('too many files to be copied');
    const folders = entries.filter((entry) => entry.isDirectory());
    const others = entries.filter((entry) => !entry.isDirectory());
    for (let at = 0; at < others.length; at += AT_ONCE) {
      const some = others.slice(at, at + AT_ONCE);
      // oxlint-disable-next-line no-await-in-loop -- So many at once.
      await Promise.all(some.map(({ name }) => this.#copyOther(join(inside, name), join(to, name))));
    }
    for (const { name } of folders) {
      // oxlint-disable-next-line no-await-in-loop -- Each has its own many files.
      await this.copyFolder(join(inside, name), join(to, name), depth + 1);
    }
    await this.#finish(to, info, 0o700);
  }

  /** SECURITY: what it is, is asked of what was opened. */
  async #copyOther(from: string, to: string): Promise<void> {
    const opened = await openFile(from);
    if (opened === 'link') await this.#copyLink(from, to);
    if (opened === 'link' || opened === 'other') return;
    await using file = opened;
    const info = await file.stat();
    if (!info.isFile()) return;
    this.#bytes += info.size;
    if (this.#bytes > this.#options.mostBytes) throw new RangeError('files are too large to be copied');
    await copyFile(join(OPEN_FILES, String(file.fd)), to, AS_COPY);
    await this.#finish(to, info, 0);
  }

  async #copyLink(from: string, to: string): Promise<void> {
    await symlink(await readlink(from), to);
    await lchown(to, this.#owner.uid, this.#owner.gid);
  }

  /** Times too, because programs compare them to know what to build again. `least` is what we need ourselves. */
  async #finish(to: string, { mode, atime, mtime }: Stats, least: number): Promise<void> {
    await lchown(to, this.#owner.uid, this.#owner.gid);
    // SECURITY: without the bits that give programs the rights of their owner.
    await chmod(to, (mode & 0o777) | least);
    await lutimes(to, atime, mtime);
  }
}

async function openFile(path: string): Promise<FileHandle | 'link' | 'other'> {
  try {
    return await open(path, AS_FILE);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ELOOP') return 'link';
    // A socket, or a device that is not there.
    if (code === 'ENXIO' || code === 'ENODEV') return 'other';
    throw error;
  }
}
