import { Semaphore } from '../lib/semaphore.ts';
import type { SyncReply, UploadRequest } from '../wire/session-files.ts';
import { toBase64 } from './base64.ts';
import { RunnerError } from './runner-error.ts';

/** A file of the caller. */
export interface IDEFile {
  /** Below the workspace, with `/` between its parts. */
  readonly path: string;
  /** Text, bytes, or where to get them when they are needed. */
  readonly content: string | Uint8Array | (() => Promise<Uint8Array>);
  /** Permission bits; those that it has, or 644, unless given. */
  readonly mode?: number | undefined;
  /** SHA-256 in hex, for whoever knows it already. */
  readonly hash?: string | undefined;
}

export type SyncSummary = Omit<SyncReply, 'needed'>;

export interface SyncOptions {
  /** Whether files that an earlier sync brought and this one does not name are removed; true unless given. */
  readonly delete?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called as contents travel. */
  readonly onProgress?: ((done: { readonly files: number; readonly of: number }) => void) | undefined;
}

export type WireFile = UploadRequest['files'][number];
type Manifest = Pick<WireFile, 'path' | 'mode'> & { readonly hash: string };
type Entry = Manifest | (Manifest & WireFile);
export type SendSync = (body: { files: readonly Entry[]; delete: boolean }) => Promise<SyncReply>;

const READ_AT_ONCE = 16;
/** Bytes of a request beside its files, and of an entry beside its path and content. */
const SLACK = 1024;
const ENTRY_BYTES = 160;
const SMALLEST_REQUEST = 4096;

const utf8 = new TextEncoder();

/**
 * Makes the workspace like `files`: first only the hashes, then the contents that are needed, in requests of at most about
 * `requestBytes`, and what is no longer there is removed with the last one.
 */
export class WorkspaceSync {
  readonly #send: SendSync;
  readonly #options: SyncOptions;
  readonly #files: ReadonlyMap<string, IDEFile>;
  #requestBytes: number;
  #synced = 0;

  constructor(
    files: readonly IDEFile[],
    options: SyncOptions,
    parts: { send: SendSync; requestBytes: number },
  ) {
    this.#files = new Map(files.map((file) => [file.path, file]));
    this.#options = options;
    this.#send = parts.send;
    this.#requestBytes = parts.requestBytes;
  }

  async run(): Promise<SyncSummary> {
    const manifest = await this.#hashAll();
    const first = await this.#send({ files: manifest, delete: this.#options.delete ?? true });
    if (first.needed.length === 0) return summaryOf(first, this.#synced);
    const last = await this.#sendAll(manifest, first.needed);
    if (last.needed.length > 0) {
      throw new RunnerError('SYNC_DISTURBED', `${last.needed.length} files changed while they were sent`, {
        hint: 'Sync again when nothing else writes to these files.',
      });
    }
    return { ...summaryOf(last, this.#synced), skipped: manifest.length - first.needed.length };
  }

  /** The contents, and the removals with the last of them. */
  async #sendAll(manifest: readonly Manifest[], needed: readonly string[]): Promise<SyncReply> {
    for (let waiting = needed; ;) {
      const left = await this.#sendContents(manifest, waiting);
      try {
        // Everything else is there now, so that a file can take the place of a folder, and a folder that of a file.
        const files = await this.#withContents(manifest, left);
        return await this.#send({ files, delete: this.#options.delete ?? true });
      } catch (error) {
        if (left.length === 0 || !this.#canSendLess(error)) throw error;
        waiting = left;
      }
    }
  }

  /** The server takes less at once than we thought. */
  #canSendLess(error: unknown): boolean {
    const isTooLarge = error instanceof RunnerError && error.code === 'BODY_TOO_LARGE';
    if (!isTooLarge || this.#requestBytes < SMALLEST_REQUEST) return false;
    this.#requestBytes = Math.ceil(this.#requestBytes / 2);
    return true;
  }

  async #hashAll(): Promise<Manifest[]> {
    const gate = new Semaphore(READ_AT_ONCE);
    return Promise.all(
      [...this.#files.values()].map((file) =>
        gate.run(async () => ({
          path: file.path,
          hash: file.hash ?? (await toHash(await bytesOf(file))),
          ...(file.mode === undefined ? {} : { mode: file.mode }),
        })),
      ),
    );
  }

  /** Sends contents until the rest fits into one request together with the manifest, and says what is left. */
  async #sendContents(manifest: readonly Manifest[], needed: readonly string[]): Promise<string[]> {
    const byPath = new Map(manifest.map((entry) => [entry.path, entry]));
    const manifestBytes = manifest.reduce((sum, { path }) => sum + ENTRY_BYTES + path.length, SLACK);
    let waiting = [...needed];
    const last: string[] = [];
    while (waiting.length > 0) {
      const { batch, isAll } = await this.#nextBatch(waiting, byPath, manifestBytes);
      if (isAll) return [...last, ...waiting];
      try {
        const { synced } = await this.#send({ files: batch, delete: false });
        this.#synced += synced;
      } catch (error) {
        if (batch.length > 1 && this.#canSendLess(error)) continue;
        // Something may be in the way that goes only with the last request.
        if (!(error instanceof RunnerError) || error.code !== 'FILE_REFUSED') throw error;
        last.push(...batch.map(({ path }) => path));
      }
      waiting = waiting.slice(batch.length);
      this.#options.onProgress?.({ files: needed.length - waiting.length, of: needed.length });
    }
    return last;
  }

  /** The next files that fit; `isAll` when these are the last ones and the manifest fits beside them. */
  async #nextBatch(
    waiting: readonly string[],
    byPath: ReadonlyMap<string, Manifest>,
    manifestBytes: number,
  ): Promise<{ batch: Entry[]; isAll: boolean }> {
    const batch: Entry[] = [];
    let bytes = SLACK;
    for (const path of waiting) {
      const entry = byPath.get(path);
      const file = this.#files.get(path);
      if (entry === undefined || file === undefined) throw unknownPath(path);
      const content = await toWireFile(file);
      const size = ENTRY_BYTES + path.length + sizeOf(content);
      if (batch.length > 0 && bytes + size > this.#requestBytes) return { batch, isAll: false };
      batch.push({ ...entry, ...content });
      bytes += size;
    }
    return { batch, isAll: bytes + manifestBytes <= this.#requestBytes };
  }

  async #withContents(manifest: readonly Manifest[], paths: readonly string[]): Promise<Entry[]> {
    const wanted = new Set(paths);
    return Promise.all(
      manifest.map(async (entry) => {
        const file = wanted.has(entry.path) ? this.#files.get(entry.path) : undefined;
        return file === undefined ? entry : { ...entry, ...(await toWireFile(file)) };
      }),
    );
  }
}

function summaryOf({ synced, skipped, deleted }: SyncReply, before: number): SyncSummary {
  return { synced: synced + before, skipped, deleted };
}

function unknownPath(path: string): RunnerError {
  return new RunnerError('BAD_REPLY', `the server needs ${JSON.stringify(path)}, which nobody named`, {
    hint: 'Check that client and server have the same version.',
  });
}

/** As text where it is text, so that requests stay small. */
export async function toWireFile(file: IDEFile): Promise<WireFile> {
  const { path, mode } = file;
  const shared = mode === undefined ? { path } : { path, mode };
  if (typeof file.content === 'string' && file.content.isWellFormed()) {
    return { ...shared, content: file.content, encoding: 'utf8' };
  }
  const bytes = await bytesOf(file);
  try {
    const content = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { ...shared, content, encoding: 'utf8' };
  } catch {
    return { ...shared, content: toBase64(bytes), encoding: 'base64' };
  }
}

/** Bytes in JSON, at most by a little too many. */
function sizeOf({ content, encoding }: WireFile): number {
  return encoding === 'base64' ? content.length : utf8.encode(JSON.stringify(content)).length;
}

async function bytesOf({ content }: IDEFile): Promise<Uint8Array> {
  if (typeof content === 'string') return utf8.encode(content);
  return typeof content === 'function' ? content() : content;
}

async function toHash(bytes: Uint8Array): Promise<string> {
  // Browsers have it only on pages that came over HTTPS or from this machine.
  if (globalThis.crypto?.subtle === undefined) {
    throw new RunnerError(
      'NO_HASHES',
      'this page cannot compute hashes, because it did not come over HTTPS',
      {
        hint: 'Serve the page over HTTPS, give every file its hash, or use upload.',
      },
    );
  }
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new Uint8Array(bytes)));
  return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
