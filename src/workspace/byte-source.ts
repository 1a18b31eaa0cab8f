/** Bytes that come in chunks of any size, taken in portions of a chosen size. */
export class ByteSource {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#iterator = chunks[Symbol.asyncIterator]();
  }

  /** Exactly so many; undefined when there are fewer. */
  async take(count: number): Promise<Uint8Array | undefined> {
    const parts: Uint8Array[] = [];
    for (let left = count; left > 0;) {
      const part = await this.takeSome(left);
      if (part === undefined) return undefined;
      parts.push(part);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }

  /** At least one, at most so many; undefined at the end. */
  async takeSome(most: number): Promise<Uint8Array | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#iterator.next();
      if (next.done === true) return undefined;
      this.#rest = next.value;
    }
    const part = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }

  /** False when there are fewer. */
  async skip(count: number): Promise<boolean> {
    for (let left = count; left > 0;) {
      const part = await this.takeSome(left);
      if (part === undefined) return false;
      left -= part.length;
    }
    return true;
  }

  async close(): Promise<void> {
    await this.#iterator.return?.();
  }
}
