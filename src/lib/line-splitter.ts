import { joinBytes } from './join-bytes.ts';

const NEWLINE = 0x0a;
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Cuts a stream of bytes into lines, however the bytes come. What is longer than `longest` is no line of use, and left out. */
export class LineSplitter {
  readonly #longest: number;
  #pieces: Uint8Array[] = [];
  #length = 0;

  constructor(longest: number) {
    this.#longest = longest;
  }

  *push(bytes: Uint8Array): Generator<string> {
    let from = 0;
    for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, from)) {
      this.#keep(bytes.subarray(from, at));
      from = at + 1;
      const line = this.#take();
      if (line !== undefined) yield line;
    }
    this.#keep(bytes.subarray(from));
  }

  /** What came after the last end of a line. */
  end(): string | undefined {
    return this.#length === 0 ? undefined : this.#take();
  }

  #keep(piece: Uint8Array): void {
    this.#length += piece.length;
    // A copy: the buffer of the source may be used again.
    if (this.#length <= this.#longest) this.#pieces.push(piece.slice());
    else this.#pieces = [];
  }

  #take(): string | undefined {
    const line = this.#length > this.#longest ? undefined : decoder.decode(joinBytes(this.#pieces));
    this.#pieces = [];
    this.#length = 0;
    return line;
  }
}
