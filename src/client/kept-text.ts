import { wholeCharacters } from '../lib/capped-bytes.ts';
import { joinBytes } from '../lib/join-bytes.ts';

/** Keeps the beginning and the end of a stream, half of `limit` each. */
export class KeptText {
  readonly #half: number;
  readonly #head: Uint8Array[] = [];
  readonly #tail: Uint8Array[] = [];
  #headBytes = 0;
  #tailBytes = 0;
  /** Also of those that are not kept. */
  #total = 0;

  constructor(limit: number) {
    this.#half = Math.floor(limit / 2);
  }

  push(bytes: Uint8Array): void {
    this.#total += bytes.length;
    const first = bytes.slice(0, this.#half - this.#headBytes);
    if (first.length > 0) this.#head.push(first);
    this.#headBytes += first.length;
    if (first.length === bytes.length) return;
    const rest = bytes.slice(Math.max(first.length, bytes.length - this.#half));
    this.#tail.push(rest);
    this.#tailBytes += rest.length;
    for (let oldest = this.#tail[0]; oldest !== undefined; oldest = this.#tail[0]) {
      if (this.#tailBytes - oldest.length < this.#half) break;
      this.#tail.shift();
      this.#tailBytes -= oldest.length;
    }
  }

  /** The text, and how many of the bytes that came are not in it. */
  text(): { readonly text: string; readonly cutBytes: number } {
    const head = joinBytes(this.#head);
    const all = joinBytes(this.#tail);
    const tail = all.subarray(Math.max(0, all.length - this.#half));
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    if (head.length + tail.length === this.#total) {
      return { text: decoder.decode(joinBytes([head, tail])), cutBytes: 0 };
    }
    const begin = head.subarray(0, wholeCharacters(head));
    const end = tail.subarray(tail.findIndex((byte) => (byte & 0b1100_0000) !== 0b1000_0000));
    const cutBytes = this.#total - begin.length - end.length;
    return {
      text: `${decoder.decode(begin)}\n[… ${cutBytes} bytes cut …]\n${decoder.decode(end)}`,
      cutBytes,
    };
  }
}
