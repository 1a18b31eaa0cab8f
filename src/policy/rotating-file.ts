import { constants } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface RotatingFileOptions {
  readonly file: string;
  /** Size after which a new file is begun. */
  readonly maxBytes: number;
  /** Older files that are kept, as `file.1` (the newest) to `file.<keep>`. */
  readonly keep: number;
}

interface OpenFile {
  readonly handle: FileHandle;
  size: number;
}

// SECURITY: no link is followed, and a FIFO that nobody reads is an error instead of a wait without end.
const FLAGS =
  constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const OWNER_ONLY = 0o600;

/**
 * Lines on disk that are only ever added, in files of bounded size. They are written whole, so that a sudden end of this
 * process or of the disk tears the last one at most; whoever opens the file next begins on a line of its own.
 * Precondition: one process writes, and one call at a time.
 */
export class RotatingFile {
  readonly #options: RotatingFileOptions;
  #open: OpenFile | undefined;

  constructor(options: RotatingFileOptions) {
    this.#options = options;
  }

  /** Writes as many of the lines as fit into one file, at least one, and tells how many. */
  async write(lines: readonly string[]): Promise<number> {
    try {
      return await this.#write(lines);
    } catch (error) {
      await this.close().catch(() => undefined);
      throw error;
    }
  }

  async close(): Promise<void> {
    const handle = this.#open?.handle;
    this.#open = undefined;
    if (handle === undefined) return;
    try {
      await handle.datasync();
    } finally {
      await handle.close();
    }
  }

  async #write(lines: readonly string[]): Promise<number> {
    const { maxBytes } = this.#options;
    const first = Buffer.byteLength(lines[0] ?? '') + 1;
    let target = await this.#opened();
    if (target.size > 0 && target.size + first > maxBytes) {
      await this.close();
      await this.#rotate();
      target = await this.#opened();
    }
    let count = 1;
    let size = target.size + first;
    for (; count < lines.length; count++) {
      size += Buffer.byteLength(lines[count] ?? '') + 1;
      if (size > maxBytes) break;
    }
    await append(target, Buffer.from(lines.slice(0, count).map(toLine).join('')));
    return count;
  }

  async #opened(): Promise<OpenFile> {
    if (this.#open !== undefined) return this.#open;
    await mkdir(dirname(this.#options.file), { recursive: true, mode: 0o700 });
    const handle = await open(this.#options.file, FLAGS, OWNER_ONLY);
    try {
      this.#open = await prepared(handle);
      return this.#open;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Moves each file one number up, but only as far as there is no gap: a rotation cut short costs no file. */
  async #rotate(): Promise<void> {
    const { file, keep } = this.#options;
    if (keep === 0) {
      await rm(file, { force: true });
      return;
    }
    const nameOf = (number: number): string => (number === 0 ? file : `${file}.${number}`);
    let last = 1;
    while (last < keep && (await exists(nameOf(last)))) last++;
    for (let number = last; number > 0; number--) await rename(nameOf(number - 1), nameOf(number));
  }
}

async function prepared(handle: FileHandle): Promise<OpenFile> {
  const info = await handle.stat();
  if (!info.isFile()) throw new Error('it is no plain file');
  if ((info.mode & 0o777) !== OWNER_ONLY) await handle.chmod(OWNER_ONLY);
  const opened = { handle, size: info.size };
  if (info.size > 0) {
    const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, info.size - 1);
    if (buffer[0] !== 0x0a) await append(opened, Buffer.from('\n'));
  }
  return opened;
}

async function append(target: OpenFile, bytes: Buffer): Promise<void> {
  let at = 0;
  while (at < bytes.length) {
    const { bytesWritten } = await target.handle.write(bytes, at, bytes.length - at);
    at += bytesWritten;
    target.size += bytesWritten;
  }
}

function toLine(text: string): string {
  return `${text}\n`;
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
    throw error;
  }
}
