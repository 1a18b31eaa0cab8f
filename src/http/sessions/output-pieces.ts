import { isUtf8 } from 'node:buffer';
import type { OutputEvent } from '../../sessions/api.ts';

type Output = Extract<OutputEvent, { readonly bytes: Uint8Array }>;

/** A piece of output as one event carries it. */
export interface Piece {
  readonly stream: 'stdout' | 'stderr';
  readonly bytes: Buffer;
  /** The same as text; undefined when the bytes are none. */
  readonly text: string | undefined;
  /** The place after it in all output: whoever goes on from here misses nothing. */
  readonly next: number;
}

const LONGEST_PIECE = 64 * 1024;

interface Held {
  readonly stream: 'stdout' | 'stderr';
  readonly from: number;
  readonly bytes: Buffer;
}

/**
 * Cuts output into pieces of bounded size. A character that came in two parts goes out in one, as long as nothing else
 * comes between: places count through both streams, so what is held back must be what is written next.
 */
export class OutputPieces {
  #held: Held | undefined;

  *add({ type: stream, from, bytes }: Output): Generator<Piece> {
    for (let at = 0; at < bytes.length; at += LONGEST_PIECE) {
      yield* this.#addPart({ stream, from: from + at, bytes: viewOf(bytes, at) });
    }
  }

  /** Whatever is held back, half a character or not. */
  *flush(): Generator<Piece> {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) yield toPiece(held);
  }

  *#addPart(part: Held): Generator<Piece> {
    const held = this.#held;
    const goesOn = held?.stream === part.stream && held.from + held.bytes.length === part.from;
    if (!goesOn) yield* this.flush();
    const whole =
      held !== undefined && goesOn ? { ...held, bytes: Buffer.concat([held.bytes, part.bytes]) } : part;
    const cut = whole.bytes.length - unfinishedBytes(whole.bytes);
    this.#held =
      cut === whole.bytes.length
        ? undefined
        : { ...whole, from: whole.from + cut, bytes: Buffer.from(whole.bytes.subarray(cut)) };
    if (cut > 0) yield toPiece({ ...whole, bytes: whole.bytes.subarray(0, cut) });
  }
}

function viewOf(bytes: Uint8Array, at: number): Buffer {
  const length = Math.min(LONGEST_PIECE, bytes.length - at);
  return Buffer.from(bytes.buffer, bytes.byteOffset + at, length);
}

function toPiece({ stream, from, bytes }: Held): Piece {
  return {
    stream,
    bytes,
    text: isUtf8(bytes) ? bytes.toString() : undefined,
    next: from + bytes.length,
  };
}

/** How many bytes at the end may be the beginning of a character. */
function unfinishedBytes(bytes: Buffer): number {
  for (let count = 1; count <= 3 && count <= bytes.length; count += 1) {
    const byte = bytes.readUInt8(bytes.length - count);
    if ((byte & 0xc0) !== 0x80) return characterLength(byte) > count ? count : 0;
  }
  return 0;
}

function characterLength(firstByte: number): number {
  if (firstByte >= 0xf0 && firstByte <= 0xf4) return 4;
  if (firstByte >= 0xe0 && firstByte <= 0xef) return 3;
  return firstByte >= 0xc2 && firstByte <= 0xdf ? 2 : 1;
}
