import { closeSync, writeSync } from 'node:fs';

/**
 * Writes a stream to an open file as it comes, up to half of the limit; of the rest the end is kept and written at the
 * close, after a note of what is missing between.
 */
export class BoundedOutput {
  readonly #file: number;
  readonly #headBytes: number;
  readonly #tailBytes: number;
  #written = 0;
  #total = 0;
  #tail: Uint8Array[] = [];
  #kept = 0;
  #lastByte = 0x0a;
  #isOpen = true;

  constructor(file: number, limitBytes: number) {
    this.#file = file;
    this.#headBytes = Math.floor(limitBytes / 2);
    this.#tailBytes = limitBytes - this.#headBytes;
  }

  write(bytes: Uint8Array): void {
    if (!this.#isOpen || bytes.length === 0) return;
    this.#total += bytes.length;
    const head = bytes.subarray(0, Math.max(0, this.#headBytes - this.#written));
    if (head.length > 0) this.#put(head);
    this.#written += head.length;
    const rest = bytes.subarray(Math.max(head.length, bytes.length - this.#tailBytes));
    if (rest.length === 0) return;
    // A copy: the buffer of the source may be used again, or be far larger.
    this.#tail.push(rest.slice());
    this.#kept += rest.length;
    this.#trim();
  }

  /** Whole pieces only, until the rest would be less than the end has to be. */
  #trim(): void {
    let dropped = 0;
    while (this.#kept - (this.#tail[dropped]?.length ?? Infinity) >= this.#tailBytes) {
      this.#kept -= this.#tail[dropped]?.length ?? 0;
      dropped++;
    }
    if (dropped > 0) this.#tail = this.#tail.slice(dropped);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    try {
      const end = Buffer.concat(this.#tail);
      const shown = end.subarray(Math.max(0, end.length - this.#tailBytes));
      const missing = this.#total - this.#written - shown.length;
      const lineEnd = this.#lastByte === 0x0a ? '' : '\n';
      if (missing > 0) this.#put(Buffer.from(`${lineEnd}[… ${missing} bytes cut …]\n`));
      if (shown.length > 0) this.#put(shown);
      if (this.#lastByte !== 0x0a) this.#put(Buffer.from('\n'));
    } finally {
      closeSync(this.#file);
      this.#tail = [];
    }
  }

  #put(bytes: Uint8Array): void {
    for (let offset = 0; offset < bytes.length;) offset += writeSync(this.#file, bytes, offset);
    this.#lastByte = bytes.at(-1) ?? this.#lastByte;
  }
}
