import type { Duplex } from 'node:stream';

const HEADER_BYTES = 8;
const STDOUT = 1;

/** Cuts the engine's stream into those of the container: one byte names it, three are zero, four are the length. */
export class StreamSplitter {
  #header = Buffer.alloc(0);
  #left = 0;
  #isStdout = false;

  /** Calls back with pieces as they come, whole frames or not. */
  push(chunk: Buffer, onPiece: (stream: 'stdout' | 'stderr', bytes: Buffer) => void): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#left === 0) {
        const header = Buffer.concat([this.#header, rest.subarray(0, HEADER_BYTES - this.#header.length)]);
        rest = rest.subarray(header.length - this.#header.length);
        this.#header = header;
        if (header.length < HEADER_BYTES) return;
        this.#isStdout = header[0] === STDOUT;
        this.#left = header.readUInt32BE(4);
        this.#header = Buffer.alloc(0);
        continue;
      }
      const piece = rest.subarray(0, this.#left);
      this.#left -= piece.length;
      rest = rest.subarray(piece.length);
      onPiece(this.#isStdout ? 'stdout' : 'stderr', piece);
    }
  }
}

/** Reads the streams of a container until they end, for whatever reason. */
export function listen(
  stream: Duplex,
  onPiece: (stream: 'stdout' | 'stderr', bytes: Buffer) => void,
): Promise<void> {
  const splitter = new StreamSplitter();
  stream.on('data', (chunk: Buffer) => splitter.push(chunk, onPiece));
  return new Promise((resolve) => {
    stream.on('error', () => stream.destroy());
    stream.on('end', () => stream.destroy());
    stream.on('close', () => resolve());
  });
}
