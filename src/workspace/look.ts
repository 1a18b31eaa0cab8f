import { HotcellError } from '../core/errors.ts';
import { RECORD_BYTES, toClockMs, toFileState, type FileState } from './file-state.ts';
import type { FilesGuest, Turn } from './files-guest.ts';
import { aboutPath } from './guest-refusal.ts';

/** Well below what the guest takes in one frame. */
const REQUEST_BYTES = 512 * 1024;
/** Single paths are answered one by one; if all are refused, then because the workspace is no folder any more. */
const THE_WHOLE = 'the workspace';

/** Lists of paths that each fit into one request. */
function toPathBatches(paths: readonly string[]): { readonly paths: string[]; readonly bytes: Buffer }[] {
  const batches: { paths: string[]; bytes: Buffer }[] = [];
  let start = 0;
  let length = 0;
  for (const [index, path] of paths.entries()) {
    // No character of a string becomes more than three bytes.
    length += 3 * path.length + 1;
    if (length < REQUEST_BYTES && index + 1 < paths.length) continue;
    const batch = paths.slice(start, index + 1);
    batches.push({ paths: batch, bytes: Buffer.from(batch.join('\0')) });
    start = index + 1;
    length = 0;
  }
  return batches;
}

export interface Looked {
  /** In the order of the paths. */
  readonly states: FileState[];
  /** When the look began, by the clock of file times. */
  readonly clockMs: number;
}

/** What stands at each path. */
export function statFiles(guest: FilesGuest, paths: readonly string[]): Promise<Looked> {
  if (paths.length === 0) return Promise.resolve({ states: [], clockMs: 0 });
  const work = guest.run(async (turn) => {
    const states: FileState[] = [];
    let clockMs = Infinity;
    for (const batch of toPathBatches(paths)) {
      turn.send('S', batch.bytes);
      const end = states.length + batch.paths.length;
      clockMs = Math.min(clockMs, await receiveStates(turn, states, end));
    }
    return { states, clockMs };
  });
  return aboutPath(THE_WHOLE, work);
}

async function receiveStates(turn: Turn, states: FileState[], end: number): Promise<number> {
  for (;;) {
    const { type, payload } = await turn.next();
    if (type === '.') return states.length === end ? requireClock(turn, payload) : fail(turn);
    if (type !== 's' || states.length + payload.length / RECORD_BYTES > end) throw turn.nonsense();
    for (let at = 0; at < payload.length; at += RECORD_BYTES)
      states.push(toFileState(payload, at) ?? fail(turn));
  }
}

function requireClock(turn: Turn, payload: Buffer): number {
  return toClockMs(payload) ?? fail(turn);
}

function fail(turn: Turn): never {
  throw turn.nonsense();
}

/** Gets the content of one file after the other, in pieces. */
export interface ContentSink {
  /** The next path; pieces follow only of a plain file within the limit. */
  begin(state: FileState): void;
  piece(bytes: Buffer): void;
}

export interface GetRequest {
  readonly paths: readonly string[];
  readonly limitBytes: number;
}

/** Resolves with the clock at its begin. */
export function getFiles(guest: FilesGuest, request: GetRequest, sink: ContentSink): Promise<number> {
  const work = guest.run(async (turn) => {
    let clockMs = Infinity;
    for (const batch of toPathBatches(request.paths)) {
      const limit = Buffer.alloc(8);
      limit.writeBigUInt64BE(BigInt(request.limitBytes));
      turn.send('G', Buffer.concat([limit, batch.bytes]));
      clockMs = Math.min(clockMs, await receiveContents(turn, batch.paths.length, { ...request, sink }));
    }
    return clockMs;
  });
  return aboutPath(THE_WHOLE, work);
}

async function receiveContents(
  turn: Turn,
  count: number,
  { limitBytes, sink }: { readonly limitBytes: number; readonly sink: ContentSink },
): Promise<number> {
  let begun = 0;
  let left = 0;
  for (;;) {
    const { type, payload } = await turn.next();
    if (type === '.') return begun === count ? requireClock(turn, payload) : fail(turn);
    if (type === 'f') {
      if (++begun > count) throw turn.nonsense();
      const state = toFileState(payload) ?? fail(turn);
      left = state.kind === 'file' && state.size <= limitBytes ? state.size : 0;
      sink.begin(state);
    } else {
      // SECURITY: never more than was announced, or one answer could fill our memory.
      left -= payload.length;
      if (type !== 'd' || left < 0) throw turn.nonsense();
      sink.piece(payload);
    }
  }
}

export interface FolderEntry {
  readonly name: Buffer;
  readonly state: FileState;
}

export interface FolderPart {
  readonly folder: Buffer;
  readonly entries: readonly FolderEntry[];
}

/** SECURITY: of a walk we keep no more than this, however long the names are. */
const WALK_BYTES = 64 * 1024 * 1024;

/** The answer to a request for folders: their entries, until the guest says that this was all. */
export async function* receiveFolders(turn: Turn): AsyncGenerator<FolderPart> {
  let bytes = 0;
  for (;;) {
    const { type, payload } = await turn.next();
    if (type === '.') return;
    bytes += payload.length;
    if (bytes > WALK_BYTES)
      throw new HotcellError('FILE_TOO_LARGE', 'the workspace has too many files to list');
    if (type !== 'D') throw turn.nonsense();
    yield toFolderPart(payload) ?? fail(turn);
  }
}

function toFolderPart(payload: Buffer): FolderPart | undefined {
  const folder = takeText(payload, 0);
  if (folder === undefined || !isFolderPath(folder.bytes)) return undefined;
  const entries: FolderEntry[] = [];
  for (let at = folder.end; at < payload.length;) {
    const name = takeText(payload, at);
    const state = name === undefined ? undefined : toFileState(payload, name.end);
    if (name === undefined || state === undefined || !isName(name.bytes)) return undefined;
    entries.push({ name: name.bytes, state });
    at = name.end + RECORD_BYTES;
  }
  return { folder: folder.bytes, entries };
}

/** Two bytes of length, and so many bytes. */
export function takeText(
  payload: Buffer,
  at: number,
): { readonly bytes: Buffer; readonly end: number } | undefined {
  if (payload.length < at + 2) return undefined;
  const end = at + 2 + payload.readUInt16BE(at);
  return payload.length < end ? undefined : { bytes: payload.subarray(at + 2, end), end };
}

const SLASH = 0x2f;

/** The empty one is the workspace itself. */
function isFolderPath(bytes: Buffer): boolean {
  return bytes.length === 0 || splitPath(bytes).every(isName);
}

export function splitPath(path: Buffer): Buffer[] {
  return path
    .toString('latin1')
    .split('/')
    .map((name) => Buffer.from(name, 'latin1'));
}

/** One part of a path, as the kernel would have it. */
export function isName(bytes: Buffer): boolean {
  const text = bytes.toString('latin1');
  return text !== '' && text !== '.' && text !== '..' && !bytes.includes(SLASH) && !bytes.includes(0);
}
