import type { Secret } from './secret.ts';

const MASK = Buffer.from('[secret]');
/** Shorter ones are words that occur by chance. */
const SHORTEST = 8;

/**
 * Takes secrets out of what an agent prints and changes: one that shows its key must not make us keep it. It is a
 * courtesy to careless agents; one that means harm prints the key backwards.
 */
export class Redactor {
  readonly #secrets: readonly Buffer[];
  readonly #longest: number;
  #held = Buffer.alloc(0);

  constructor(secrets: readonly Secret[]) {
    this.#secrets = secrets
      .map((secret) => Buffer.from(secret.reveal()))
      .filter(({ length }) => length >= SHORTEST);
    this.#longest = Math.max(1, ...this.#secrets.map(({ length }) => length));
  }

  /** What can be passed on; the end is held back as long as it may be the beginning of a secret. */
  push(bytes: Uint8Array): Uint8Array {
    if (this.#secrets.length === 0) return bytes;
    const all = this.#mask(Buffer.concat([this.#held, bytes]));
    const end = all.length - this.#pendingAt(all);
    this.#held = Buffer.from(all.subarray(end));
    return all.subarray(0, end);
  }

  flush(): Uint8Array {
    const rest = this.#held;
    this.#held = Buffer.alloc(0);
    return rest;
  }

  /** Of what is there as a whole. */
  mask(bytes: Uint8Array): Uint8Array {
    return this.#mask(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }

  #mask(bytes: Buffer): Buffer {
    return this.#secrets.reduce((left, secret) => maskAll(left, secret), bytes);
  }

  /** How many bytes at the end are the beginning of a secret. */
  #pendingAt(bytes: Buffer): number {
    for (let length = Math.min(bytes.length, this.#longest - 1); length > 0; length--) {
      const end = bytes.subarray(bytes.length - length);
      if (this.#secrets.some((secret) => secret.length > length && secret.subarray(0, length).equals(end)))
        return length;
    }
    return 0;
  }
}

function maskAll(bytes: Buffer, secret: Buffer): Buffer {
  const pieces: Buffer[] = [];
  let from = 0;
  for (let at = bytes.indexOf(secret); at !== -1; at = bytes.indexOf(secret, from)) {
    pieces.push(bytes.subarray(from, at), MASK);
    from = at + secret.length;
  }
  return pieces.length === 0 ? bytes : Buffer.concat([...pieces, bytes.subarray(from)]);
}
