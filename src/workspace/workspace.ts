import type { CellFile } from '../core/cell.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { archiveFiles } from './archive.ts';
import type { PatchedFile, PathContent, SyncReport, SyncWish } from './files.ts';
import { FilesGuest, type GuestParts } from './files-guest.ts';
import { patchFiles } from './patch-files.ts';
import { readPath } from './read-path.ts';
import { takeSnapshot, type Snapshot } from './snapshot.ts';
import { syncFiles } from './sync-files.ts';
import type { SyncIndex } from './synced-files.ts';
import { removeFiles, writeFiles } from './write-files.ts';

const TIMEOUT_MS = 60_000;

export type WorkspaceParts = Omit<GuestParts, 'timeoutMs'> & Partial<Pick<GuestParts, 'timeoutMs'>>;

/**
 * The files of a session. All work on them is done inside the cell, with the rights of its user. Operations may be started
 * at any time; changes happen one after the other, each whole or not at all.
 */
export class Workspace {
  readonly #guest: FilesGuest;
  readonly #changes = new Semaphore(1);

  constructor(parts: WorkspaceParts) {
    this.#guest = new FilesGuest({ timeoutMs: TIMEOUT_MS, ...parts });
  }

  /** All or nothing. What it writes counts as brought by a client, if there is an index. */
  write(files: readonly CellFile[], index?: SyncIndex): Promise<void> {
    return this.#changes.run(() => writeFiles(this.#guest, files, index));
  }

  /** Plain files only; all or nothing. */
  remove(paths: readonly string[], index?: SyncIndex): Promise<void> {
    return this.#changes.run(() => removeFiles(this.#guest, paths, index));
  }

  /** Updates the index too. */
  sync(wish: SyncWish, index: SyncIndex): Promise<SyncReport> {
    return this.#changes.run(() => syncFiles(this.#guest, wish, index));
  }

  /** All or nothing. With an index, what it writes counts as brought by a client. */
  applyPatch(diff: string, index?: SyncIndex): Promise<PatchedFile[]> {
    return this.#changes.run(() => patchFiles(this.#guest, diff, index));
  }

  read(path: string, limitBytes: number): Promise<PathContent> {
    return readPath(this.#guest, path, limitBytes);
  }

  snapshot(): Promise<Snapshot> {
    return takeSnapshot(this.#guest);
  }

  archive(): AsyncIterable<Uint8Array> {
    return archiveFiles(this.#guest);
  }

  /** Ends the helper in the cell, after what is under way. */
  close(): Promise<void> {
    return this.#guest.close();
  }
}
