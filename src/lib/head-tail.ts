import { wholeCharacters } from './capped-bytes.ts';
import { joinBytes } from './join-bytes.ts';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Keeps the beginning and the end of a stream, half of `limit` each, and counts the rest. */
export class HeadTail {
  readonly #limit: number;
  readonly #head: Uint8Array[] = [];
  #headBytes = 0;
  #isHeadClosed = false;
  #tail: Uint8Array[] = [];
  #tailBytes = 0;
  /** Also of those that are not kept. */
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get #headRoom(): number {
    return this.#isHeadClosed ? 0 : Math.floor(this.#limit / 2) - this.#headBytes;
  }

  get #tailRoom(): number {
    return this.#limit - this.#headBytes;
  }

  push(bytes: Uint8Array): void {
    this.#total += bytes.length;
    const room = this.#headRoom;
    // Copies: the source's buffer may be a large slab that a small kept slice would pin.
    const first = bytes.slice(0, room);
    if (first.length > 0) this.#head.push(first);
    this.#headBytes += first.length;
    if (first.length === bytes.length) return;
    const rest = bytes.slice(Math.max(first.length, bytes.length - this.#tailRoom));
    this.#tail.push(rest);
    this.#tailBytes += rest.length;
    this.#trim();
  }

  #trim(): void {
    let dropped = 0;
    for (const { length } of this.#tail) {
      if (this.#tailBytes - length < this.#tailRoom) break;
      this.#tailBytes -= length;
      dropped++;
    }
    if (dropped > 0) this.#tail = this.#tail.slice(dropped);
  }

  /** Something is missing here that this one was never told of. */
  gap(): void {
    this.#isHeadClosed = true;
  }

  /** The text of a stream that had `total` bytes, if more than came here, and how many of them are not in it. */
  text(total = this.#total): { text: string; cutBytes: number } {
    const head = joinBytes(this.#head);
    const all = joinBytes(this.#tail);
    const tail = all.subarray(Math.max(0, all.length - this.#tailRoom));
    if (head.length + tail.length >= total) {
      return { text: decoder.decode(joinBytes([head, tail])), cutBytes: 0 };
    }
    const begin = head.subarray(0, wholeCharacters(head));
    const end = tail.subarray(leadingContinuation(tail));
    const cutBytes = total - begin.length - end.length;
    const mark = `${begin.length === 0 ? '' : '\n'}[… ${cutBytes} bytes cut …]\n`;
    return { text: `${decoder.decode(begin)}${mark}${decoder.decode(end)}`, cutBytes };
  }
}

/** Bytes at the beginning that belong to a character that began before. */
function leadingContinuation(bytes: Uint8Array): number {
  let count = 0;
  while (count < 3 && ((bytes[count] ?? 0) & 0b1100_0000) === 0b1000_0000) count++;
  return count;
}
