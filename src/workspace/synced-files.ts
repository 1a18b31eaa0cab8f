import * as z from 'zod';
import { storedJson } from '../lib/stored-json.ts';
import type { FileState } from './file-state.ts';

export interface IndexEntry {
  /** SHA-256 of the content when the file had this stamp. */
  readonly hash: string;
  readonly stamp: string;
  /** The file could have been changed after that without another stamp. */
  readonly isYoung: boolean;
  /** A client sent or named it: it goes when the client no longer has it. */
  readonly isBrought: boolean;
}

const Stored = z.object({
  version: z.literal(1),
  files: z.array(z.tuple([z.string(), z.string(), z.string(), z.boolean(), z.boolean()])),
  folders: z.array(z.string()),
});

/** What we know of the files that clients brought, as git's index: it saves reading files that have not changed. */
export class SyncIndex {
  readonly #files: Map<string, IndexEntry>;
  /** Folders that were made for such files. */
  readonly #folders: Set<string>;

  private constructor(files: Map<string, IndexEntry>, folders: Set<string>) {
    this.#files = files;
    this.#folders = folders;
  }

  static empty(): SyncIndex {
    return new SyncIndex(new Map(), new Set());
  }

  /** Undefined for what cannot be read. */
  static read(text: string): SyncIndex | undefined {
    const { data } = storedJson(Stored).safeParse(text);
    if (data === undefined) return undefined;
    const entries = data.files.map(([path, hash, stamp, isYoung, isBrought]) => {
      const entry = { hash, stamp: Buffer.from(stamp, 'base64').toString('latin1'), isYoung, isBrought };
      return [path, entry] as const;
    });
    return new SyncIndex(new Map(entries), new Set(data.folders));
  }

  toText(): string {
    const files = [...this.#files].map(([path, { hash, stamp, isYoung, isBrought }]) => [
      path,
      hash,
      Buffer.from(stamp, 'latin1').toString('base64'),
      isYoung,
      isBrought,
    ]);
    return JSON.stringify({ version: 1, files, folders: [...this.#folders] });
  }

  /** The hash of the file in this state, if it is certain. */
  hashOf(path: string, state: FileState): string | undefined {
    const entry = this.#files.get(path);
    return entry !== undefined && !entry.isYoung && entry.stamp === state.stamp ? entry.hash : undefined;
  }

  isBrought(path: string): boolean {
    return this.#files.get(path)?.isBrought ?? false;
  }

  set(path: string, entry: IndexEntry): void {
    this.#files.set(path, entry);
  }

  /** A client has named the file, which was there. */
  claim(path: string): void {
    const entry = this.#files.get(path);
    if (entry !== undefined && !entry.isBrought) this.#files.set(path, { ...entry, isBrought: true });
  }

  forget(path: string): void {
    this.#files.delete(path);
    this.#folders.delete(path);
  }

  /** Files that clients brought. */
  *brought(): Generator<string> {
    for (const [path, { isBrought }] of this.#files) if (isBrought) yield path;
  }

  /** The last `count` folders above a file were made with it. */
  addFolders(path: string, count: number): void {
    for (const folder of foldersAbove(path).slice(0, count)) this.#folders.add(folder);
  }

  isMadeFolder(path: string): boolean {
    return this.#folders.has(path);
  }
}

/** The folders on the way to a file, the nearest first. */
export function foldersAbove(path: string): string[] {
  const folders: string[] = [];
  for (let cut = path.lastIndexOf('/'); cut > 0; cut = path.lastIndexOf('/', cut - 1))
    folders.push(path.slice(0, cut));
  return folders;
}
