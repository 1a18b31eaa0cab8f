import { constants } from 'node:fs';
import { chmod, mkdir, open, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { staysBelow, toParts } from './archive-place.ts';
import { ArchiveRefusal, brokenArchive } from './archive-refusal.ts';
import { readTar, type TarItem } from './tar-reader.ts';

export interface Extraction {
  /**
   * A folder that was just made, empty, and is nobody else's. SECURITY: whatever is in it is ours; that is why nothing
   * in it can lead us elsewhere.
   */
  readonly into: string;
  /** Only what is below this path of the archive, or is this path. */
  readonly below: readonly string[];
  /** SECURITY: a file with holes can be larger than any disk. */
  readonly mostBytes: number;
  /** Of files, folders and links together. */
  readonly mostItems?: number;
  /** For everybody to read, whatever the archive and the umask say: 0755 what can be run, 0644 other files. */
  readonly isPublic?: boolean;
  readonly onItem?: (done: { readonly files: number; readonly bytes: number }) => void;
}

export interface Extracted {
  readonly files: number;
  readonly bytes: number;
  readonly links: number;
  /** Names of what was left out: devices, links that lead out, names that are no text. */
  readonly leftOut: readonly string[];
  /** What `below` itself was. */
  readonly root: 'missing' | 'file' | 'folder';
}

const MOST_ITEMS = 1_000_000;
/** Never with O_TRUNC or without O_EXCL: two members of the same name are no accident. */
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Writes the files of an archive. A single file is called `file` in the folder, a folder is the folder itself. */
export async function extractArchive(
  chunks: AsyncIterable<Uint8Array>,
  extraction: Extraction,
): Promise<Extracted> {
  const extractor = new Extractor(extraction);
  try {
    for await (const item of readTar(chunks)) await extractor.take(item);
    return await extractor.finish();
  } catch (error) {
    const isTwice = error instanceof Error && 'code' in error && TWICE.has(error.code);
    throw isTwice ? brokenArchive('two members of it want the same place') : error;
  }
}

function tooLarge(why: string): ArchiveRefusal {
  return new ArchiveRefusal('FILE_TOO_LARGE', why);
}

const TWICE: ReadonlySet<unknown> = new Set(['EEXIST', 'ENOTDIR', 'EISDIR']);

export const SINGLE_FILE = 'file';

class Extractor {
  readonly #options: Extraction;
  readonly #links: { readonly parts: readonly string[]; readonly target: string }[] = [];
  readonly #leftOut: string[] = [];
  readonly #folders = new Set<string>(['']);
  #root: Extracted['root'] = 'missing';
  #items = 0;
  #files = 0;
  #bytes = 0;

  constructor(options: Extraction) {
    this.#options = options;
  }

  async take(item: TarItem): Promise<void> {
    const { below, mostItems = MOST_ITEMS } = this.#options;
    this.#items += 1;
    if (this.#items > mostItems) throw tooLarge(`it has more than ${mostItems} members`);
    const parts = toParts(item.path);
    if (parts === undefined) {
      this.#leftOut.push(Buffer.from(item.path).toString());
      return;
    }
    if (parts.length < below.length || below.some((part, at) => parts[at] !== part)) return;
    const inside = parts.slice(below.length);
    if (inside.length === 0 && item.kind === 'file') {
      this.#root = 'file';
      await this.#write([SINGLE_FILE], item);
    } else if (inside.length === 0) {
      if (item.kind === 'folder') this.#root = 'folder';
    } else {
      this.#root = 'folder';
      await this.#takeInside(inside, item);
    }
  }

  async #takeInside(parts: readonly string[], item: TarItem): Promise<void> {
    switch (item.kind) {
      case 'folder':
        await this.#makeFolder(parts);
        return;
      case 'file':
        await this.#makeFolder(parts.slice(0, -1));
        await this.#write(parts, item);
        return;
      case 'link':
        if (staysBelow(parts, item.target)) {
          this.#links.push({ parts, target: Buffer.from(item.target).toString() });
          return;
        }
        this.#leftOut.push(parts.join('/'));
        return;
      case 'other':
        this.#leftOut.push(parts.join('/'));
        return;
      default:
        item.kind satisfies never;
    }
  }

  async #makeFolder(parts: readonly string[]): Promise<void> {
    const path = parts.join('/');
    if (this.#folders.has(path)) return;
    await this.#makeFolder(parts.slice(0, -1));
    // SECURITY: fails on a file in its place, and there are no links yet.
    await mkdir(join(this.#options.into, path));
    if (this.#options.isPublic === true) await chmod(join(this.#options.into, path), 0o755);
    this.#folders.add(path);
  }

  async #write(parts: readonly string[], item: TarItem): Promise<void> {
    if (this.#bytes + item.size > this.#options.mostBytes) {
      throw tooLarge(`it has more than ${this.#options.mostBytes} bytes`);
    }
    // Without the bits that lend rights; what is left goes through the umask.
    const mode = (item.mode & 0o777) | 0o600;
    await using file = await open(join(this.#options.into, ...parts), NEW_FILE, mode);
    for await (const bytes of item.content()) {
      await file.writeFile(bytes);
      this.#bytes += bytes.length;
    }
    if (this.#options.isPublic === true) await file.chmod((item.mode & 0o100) === 0 ? 0o644 : 0o755);
    // Nothing is from the future: tools that compare times would be misled.
    const modified = Math.min(item.modifiedSeconds, Date.now() / 1000);
    await file.utimes(modified, modified);
    this.#files += 1;
    this.#options.onItem?.({ files: this.#files, bytes: this.#bytes });
  }

  /** SECURITY: links come last, when nothing is written any more that could go through one. */
  async finish(): Promise<Extracted> {
    for (const { parts } of this.#links) await this.#makeFolder(parts.slice(0, -1));
    for (const { parts, target } of this.#links) await symlink(target, join(this.#options.into, ...parts));
    return {
      files: this.#files,
      bytes: this.#bytes,
      links: this.#links.length,
      leftOut: this.#leftOut,
      root: this.#root,
    };
  }
}
