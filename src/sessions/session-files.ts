import { randomBytes } from 'node:crypto';
import type { CellFile } from '../core/cell.ts';
import type { Clock } from '../core/clock.ts';
import { HotcellError } from '../core/errors.ts';
import { parseDotenv } from '../lib/dotenv.ts';
import type { PatchedFile, PathContent, SentFile, SyncReport, SyncWish } from '../workspace/files.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import { Snapshot, diffSnapshots } from '../workspace/snapshot.ts';
import { SyncIndex } from '../workspace/synced-files.ts';
import type { Workspace } from '../workspace/workspace.ts';
import type { Changes } from './api.ts';
import type { ChangedFile } from './stored-exec.ts';
import type { HelperParts } from './helper-execs.ts';

const KiB = 1024;
const DOTENV_BYTES = 256 * KiB;
/** Moments that `since` can name. */
const SNAPSHOTS_KEPT = 8;
/** What a result tells of changed files; the rest is for `GET …/changes` and `GET …/fs`. */
const CHANGES_TOLD = 1000;
const SMALL_FILE_BYTES = 32 * KiB;
const CONTENT_BYTES = 256 * KiB;

interface FilesParts extends Pick<HelperParts, 'sessionId' | 'rows' | 'log'> {
  readonly workspace: Workspace;
  readonly clock: Clock;
  readonly readBytes: number;
  /** As it was stored. */
  readonly syncIndex: string | undefined;
}

/** The files of a session, with what has to be remembered between two requests. */
export class SessionFiles {
  readonly #parts: FilesParts;
  #index: SyncIndex | undefined;
  /** The last moment that somebody may name, so that it need not be read from the store. */
  #latest: { readonly cursor: string; readonly snapshot: Snapshot } | undefined;

  constructor(parts: FilesParts) {
    this.#parts = parts;
  }

  async upload(files: readonly SentFile[]): Promise<void> {
    await this.#changing((index) => this.#parts.workspace.write(files.map(toCellFile), index));
  }

  async sync(wish: SyncWish): Promise<SyncReport> {
    const report = await this.#parts.workspace.sync(wish, this.#openIndex());
    // What was only compared need not be remembered at once.
    if (report.synced + report.deleted > 0) this.#storeIndex();
    return report;
  }

  applyPatch(diff: string): Promise<PatchedFile[]> {
    return this.#changing((index) => this.#parts.workspace.applyPatch(diff, index));
  }

  read(path: string): Promise<PathContent> {
    return this.#parts.workspace.read(path, this.#parts.readBytes);
  }

  archive(): AsyncIterable<Uint8Array> {
    return this.#parts.workspace.archive();
  }

  /** Without `since`: everything there is. */
  async changes(since: string | undefined): Promise<Changes> {
    const before = since === undefined ? new Snapshot(new Map()) : this.#findSnapshot(since);
    const snapshot = await this.#parts.workspace.snapshot();
    const changes = diffSnapshots(before, snapshot);
    if (since !== undefined && changes.length === 0) return { cursor: since, changes };
    const { rows, sessionId, clock } = this.#parts;
    const cursor = randomBytes(8).toString('hex');
    rows.addSnapshot(
      sessionId,
      { cursor, at: clock.now(), content: JSON.stringify(snapshot) },
      SNAPSHOTS_KEPT,
    );
    this.#latest = { cursor, snapshot };
    return { cursor, changes };
  }

  #findSnapshot(cursor: string): Snapshot {
    if (this.#latest?.cursor === cursor) return this.#latest.snapshot;
    const stored = this.#parts.rows.findSnapshot(this.#parts.sessionId, cursor);
    const snapshot = stored === undefined ? undefined : Snapshot.read(stored);
    if (snapshot !== undefined) return snapshot;
    throw new HotcellError('INVALID_REQUEST', 'since: no cursor of this session, or too old', {
      field: 'since',
      hint: `Leave it out for all files; the last ${SNAPSHOTS_KEPT} cursors are known.`,
    });
  }

  /** Looks at the files; the function says what has changed since, with the content of small files. */
  async watch(): Promise<() => Promise<ChangedFile[]>> {
    const { workspace } = this.#parts;
    const before = await workspace.snapshot();
    return async () => {
      const changes = diffSnapshots(before, await workspace.snapshot()).slice(0, CHANGES_TOLD);
      const told: ChangedFile[] = [];
      let room = CONTENT_BYTES;
      for (const { path, change, size } of changes) {
        const wanted = change !== 'deleted' && size <= Math.min(room, SMALL_FILE_BYTES);
        const content = wanted ? await this.#readSmall(path) : undefined;
        if (content !== undefined) room -= size;
        told.push({ path, change, size, ...content });
      }
      return told;
    };
  }

  /** Links, and files that changed meanwhile, have no content to tell. */
  async #readSmall(path: string): Promise<Pick<ChangedFile, 'content' | 'encoding'> | undefined> {
    try {
      const file = await this.#parts.workspace.read(path, SMALL_FILE_BYTES);
      return file.kind === 'file' ? { content: file.content, encoding: file.encoding } : undefined;
    } catch (error) {
      if (error instanceof HotcellError && error.status < 500) return undefined;
      throw error;
    }
  }

  async dotenv(): Promise<Readonly<Record<string, string>>> {
    try {
      const file = await this.#parts.workspace.read('.env', DOTENV_BYTES);
      return file.kind === 'file' && file.encoding === 'utf8' ? parseDotenv(file.content) : {};
    } catch (error) {
      if (error instanceof HotcellError && error.code === 'FILE_NOT_FOUND') return {};
      throw error;
    }
  }

  async #changing<T>(work: (index: SyncIndex) => Promise<T>): Promise<T> {
    const result = await work(this.#openIndex());
    this.#storeIndex();
    return result;
  }

  #openIndex(): SyncIndex {
    this.#index ??= this.#readIndex() ?? SyncIndex.empty();
    return this.#index;
  }

  /** What cannot be read is made anew: files are then compared by their content, and what is there stays. */
  #readIndex(): SyncIndex | undefined {
    const { syncIndex, sessionId, log } = this.#parts;
    if (syncIndex === undefined) return undefined;
    const index = SyncIndex.read(syncIndex);
    if (index === undefined) log.warn({ session: toSessionMark(sessionId) }, 'sync index unreadable');
    return index;
  }

  #storeIndex(): void {
    this.#parts.rows.setSyncIndex(this.#parts.sessionId, this.#openIndex().toText());
  }
}

function toCellFile({ path, content, encoding, mode }: SentFile): CellFile {
  const bytes = Buffer.from(content, encoding);
  if (mode === undefined) return { path, content: bytes };
  return { path, content: bytes, mode: typeof mode === 'string' ? Number.parseInt(mode, 8) : mode };
}
