import { HotcellError } from '../core/errors.ts';
import { toFileState, toModifiedSeconds } from './file-state.ts';
import type { FilesGuest, Reply } from './files-guest.ts';
import { GuestRefusal } from './guest-refusal.ts';
import { isName, splitPath, takeText } from './look.ts';
import { foldersAbove } from './synced-files.ts';
import { TAR_END, toPadding, toTarHeader } from '../lib/tar-member.ts';

/** SECURITY: twice what an honest guest sends at once, with all the headers. */
const MOST_HELD_BYTES = 4 * 1024 * 1024;
/** SECURITY: of so many links we remember that nothing may stand below them. */
const MOST_LINKS = 200_000;
const ZEROS = Buffer.alloc(64 * 1024);

/**
 * The whole workspace as a tar archive, a portion at a time and only when the reader asks for it. Links stay links. What is
 * neither file, folder nor link, and what cannot be read, is left out.
 */
export async function* archiveFiles(guest: FilesGuest): AsyncGenerator<Uint8Array> {
  const writer = new ArchiveWriter();
  let id: number | undefined;
  let isWhole = false;
  try {
    while (!isWhole) {
      const portion = await takePortion(guest, writer, id);
      ({ id, isWhole } = portion);
      for (const piece of portion.pieces) yield* toBytes(piece);
    }
  } finally {
    if (id !== undefined && !isWhole) await closeArchive(guest, id);
  }
  for (const piece of writer.endFile()) yield* toBytes(piece);
  yield TAR_END;
}

interface Portion {
  /** Its name towards the guest. */
  readonly id: number;
  readonly isWhole: boolean;
  readonly pieces: readonly Piece[];
}

async function takePortion(guest: FilesGuest, writer: ArchiveWriter, id?: number): Promise<Portion> {
  try {
    return await guest.run(async (turn) => {
      const name = id ?? turn.id;
      turn.send('T', Buffer.from(id === undefined ? 'open' : 'next'), name);
      const pieces: Piece[] = [];
      let heldBytes = 0;
      for (;;) {
        const reply = await turn.next();
        if (reply.type === '.') return { id: name, isWhole: reply.payload[0] === 0, pieces };
        const made = writer.take(reply);
        heldBytes += 1024 + reply.payload.length;
        if (made === undefined || heldBytes > MOST_HELD_BYTES) throw turn.nonsense();
        pieces.push(...made);
      }
    });
  } catch (error) {
    if (!(error instanceof GuestRefusal)) throw error;
    throw new HotcellError('CELL_LOST', 'the archive was interrupted', { cause: error });
  }
}

/** The reader has had enough. If that cannot be told to the guest, then because it is gone. */
async function closeArchive(guest: FilesGuest, id: number): Promise<void> {
  try {
    await guest.run(async (turn) => {
      turn.send('T', Buffer.from('close'), id);
      await turn.next();
    });
  } catch {
    // Gone, and the archive with it.
  }
}

/** Bytes, or so many zeros. */
type Piece = Uint8Array | number;

function* toBytes(piece: Piece): Generator<Uint8Array> {
  if (typeof piece !== 'number') {
    yield piece;
    return;
  }
  for (let left = piece; left > 0; left -= ZEROS.length) yield ZEROS.subarray(0, left);
}

/** Makes a well-formed archive out of whatever the guest says. */
class ArchiveWriter {
  readonly #links = new Set<string>();
  #left = 0;
  #padding: Uint8Array = new Uint8Array();

  /** Undefined for what makes no sense. */
  take({ type, payload }: Reply): Piece[] | undefined {
    if (type === 'E') return this.#begin(payload);
    if (type !== 'd') return undefined;
    // The size in the header is kept: a file that has grown meanwhile is cut.
    const bytes = payload.subarray(0, this.#left);
    this.#left -= bytes.length;
    return [bytes];
  }

  /** A file that has become shorter meanwhile is filled up. */
  endFile(): Piece[] {
    const rest = [this.#left, this.#padding];
    this.#left = 0;
    this.#padding = new Uint8Array();
    return rest;
  }

  #begin(payload: Buffer): Piece[] | undefined {
    const path = takeText(payload, 0);
    const target = path === undefined ? undefined : takeText(payload, path.end);
    const state = target === undefined ? undefined : toFileState(payload, target.end);
    if (path === undefined || target === undefined || state === undefined) return undefined;
    const { kind, mode } = state;
    if (kind !== 'file' && kind !== 'folder' && kind !== 'link') return undefined;
    if (!this.#isSafe(path.bytes) || (kind === 'link' && !this.#noteLink(path.bytes))) return undefined;
    const before = this.endFile();
    const size = kind === 'file' ? state.size : 0;
    this.#left = size;
    this.#padding = toPadding(size);
    const modifiedSeconds = toModifiedSeconds(state);
    return [
      ...before,
      toTarHeader({ kind, path: path.bytes, target: target.bytes, mode, size, modifiedSeconds }),
    ];
  }

  /** SECURITY: unpacking it must stay below the folder that it is unpacked in, also by way of the links in it. */
  #isSafe(path: Buffer): boolean {
    const isBelowLink = foldersAbove(path.toString('latin1')).some((folder) => this.#links.has(folder));
    return !isBelowLink && splitPath(path).every(isName);
  }

  #noteLink(path: Buffer): boolean {
    this.#links.add(path.toString('latin1'));
    return this.#links.size <= MOST_LINKS;
  }
}
