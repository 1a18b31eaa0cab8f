import { joinBytes } from './join-bytes.ts';

/** Keeps the first `limit` bytes of a stream and counts the rest. */
export class CappedBytes {
  readonly #limit: number;
  readonly #chunks: Uint8Array[] = [];
  #kept = 0;
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(bytes: Uint8Array): void {
    this.#total += bytes.length;
    const room = this.#limit - this.#kept;
    if (room <= 0) return;
    // A copy: the source's buffer may be a large slab that a small kept slice would pin.
    const kept = bytes.slice(0, room);
    this.#chunks.push(kept);
    this.#kept += kept.length;
  }

  get total(): number {
    return this.#total;
  }

  get truncated(): boolean {
    return this.#total > this.#limit;
  }

  bytes(): Uint8Array {
    return joinBytes(this.#chunks);
  }

  /** The kept bytes as text. A UTF-8 character that the cap split is dropped, not replaced. */
  text(): string {
    const bytes = this.bytes();
    return new TextDecoder().decode(this.truncated ? bytes.subarray(0, wholeCharacters(bytes)) : bytes);
  }
}

/** Length of `bytes` without a UTF-8 sequence that is cut off at its end. */
export function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
