import type { HotcellError } from '../core/errors.ts';
import { RECORD_BYTES, toFileState, type FileState } from './file-state.ts';
import type { FilesGuest, Turn } from './files-guest.ts';
import { GuestRefusal, toFileError } from './guest-refusal.ts';

/** One of many changes that are made together or not at all. */
export type Step =
  | {
      readonly kind: 'write';
      readonly path: string;
      readonly content: Uint8Array;
      readonly mode: number;
      readonly expected?: string;
    }
  | { readonly kind: 'remove'; readonly path: string; readonly expected?: string }
  /** A folder, if nothing is left in it by then. */
  | { readonly kind: 'prune'; readonly path: string };

export interface StepResult {
  /** Of a written file: how many of the folders above it were made. Else 1 if it is gone. */
  readonly count: number;
  readonly state: FileState;
}

/** The beginning of the stamp of what must stand there; this one for nothing. */
export const MUST_BE_MISSING = '-';

const LETTERS = { write: 'W', remove: 'D', prune: 'R' } as const;
const PIECE_BYTES = 256 * 1024;
/** So many frames may be on their way: enough to keep the guest busy, and all that it has to hold. */
const WINDOW = 4;
const RESULT_BYTES = 2 + RECORD_BYTES;
/** Mode and size. */
const DESCRIPTION_BYTES = 10;
/** As much as a frame has, and no description cut in two. */
const DESCRIPTIONS_BYTES = 20_000 * DESCRIPTION_BYTES;

/**
 * Makes all changes, in order, or none. Contents are staged first, and each change is undone if a later one fails. A path
 * whose file is not as `expected` is refused with `changed`.
 */
export async function commitBatch(
  guest: FilesGuest,
  steps: readonly Step[],
  changed: (path: string) => HotcellError = toChanged,
): Promise<StepResult[]> {
  if (steps.length === 0) return [];
  const writes = steps.filter((step) => step.kind === 'write');
  let named: readonly Step[] = writes;
  try {
    return await guest.run(async (turn) => {
      const sender = new Sender(turn);
      const [first, ...others] = toPieces([toDescriptions(writes)], DESCRIPTIONS_BYTES);
      await sender.send('B', [first ?? Buffer.alloc(0)]);
      await sender.send('M', others);
      await sender.send('C', toPieces(writes.map(({ content }) => content)));
      await sender.send('P', toPieces(steps.map(encodeStep)));
      await sender.settle();
      named = steps;
      turn.send('X');
      return receiveResults(turn, steps.length);
    });
  } catch (error) {
    if (!(error instanceof GuestRefusal)) throw error;
    const path = named[error.index]?.path ?? 'the workspace';
    throw error.reason === 'changed' ? changed(path) : toFileError(error, path);
  }
}

function toChanged(path: string): HotcellError {
  return toFileError(new GuestRefusal('changed', 0, 0), path);
}

class Sender {
  readonly #turn: Turn;
  #underWay = 0;

  constructor(turn: Turn) {
    this.#turn = turn;
  }

  async send(type: string, pieces: Iterable<Buffer>): Promise<void> {
    for (const piece of pieces) {
      if (this.#underWay >= WINDOW) await this.#receive();
      this.#turn.send(type, piece);
      this.#underWay++;
    }
  }

  async settle(): Promise<void> {
    while (this.#underWay > 0) await this.#receive();
  }

  async #receive(): Promise<void> {
    if ((await this.#turn.next()).type !== 'a') throw this.#turn.nonsense();
    this.#underWay--;
  }
}

function toDescriptions(writes: readonly { readonly content: Uint8Array; readonly mode: number }[]): Buffer {
  const all = Buffer.alloc(writes.length * DESCRIPTION_BYTES);
  for (const [index, { content, mode }] of writes.entries()) {
    all.writeUInt16BE(mode & 0o777, index * DESCRIPTION_BYTES);
    all.writeBigUInt64BE(BigInt(content.length), index * DESCRIPTION_BYTES + 2);
  }
  return all;
}

function encodeStep(step: Step): Buffer {
  const path = Buffer.from(step.path);
  const expected = Buffer.from((step.kind === 'prune' ? undefined : step.expected) ?? '', 'latin1');
  const lengths = [Buffer.alloc(2), Buffer.alloc(2)] as const;
  lengths[0].writeUInt16BE(path.length);
  lengths[1].writeUInt16BE(expected.length);
  return Buffer.concat([Buffer.from(LETTERS[step.kind]), lengths[0], path, lengths[1], expected]);
}

/** The parts as one stream, cut into pieces of equal size. */
function* toPieces(parts: Iterable<Uint8Array>, size = PIECE_BYTES): Generator<Buffer> {
  let pending: Uint8Array[] = [];
  let length = 0;
  for (const part of parts) {
    for (let at = 0; at < part.length;) {
      const taken = part.subarray(at, at + size - length);
      pending.push(taken);
      length += taken.length;
      at += taken.length;
      if (length < size) continue;
      yield Buffer.concat(pending);
      pending = [];
      length = 0;
    }
  }
  if (length > 0) yield Buffer.concat(pending);
}

async function receiveResults(turn: Turn, count: number): Promise<StepResult[]> {
  const results: StepResult[] = [];
  for (;;) {
    const { type, payload } = await turn.next();
    if (type === '.' && results.length === count) return results;
    if (type !== 'w' || results.length + payload.length / RESULT_BYTES > count) throw turn.nonsense();
    for (let at = 0; at < payload.length; at += RESULT_BYTES) {
      const state = toFileState(payload, at + 2);
      if (state === undefined) throw turn.nonsense();
      results.push({ count: payload.readUInt16BE(at), state });
    }
  }
}
