import { open, type FileHandle } from 'node:fs/promises';
import {
  HEADER_BYTES,
  LONGEST_RECORD,
  measureRecords,
  toPieces,
  type OutputPiece,
} from './output-records.ts';
import { toSegmentPath, type Segment } from './output-segments.ts';

const CHUNK_BYTES = LONGEST_RECORD + HEADER_BYTES;

/** What a reader needs to know of the log. */
export interface ReadableLog {
  readonly folder: string;
  readonly bytes: number;
  segmentAt(byte: number): Segment | undefined;
}

interface OpenSegment {
  readonly segment: Segment;
  readonly file: FileHandle;
  /** Where the next unread record begins, in the file and in all output. */
  fileAt: number;
  byteAt: number;
}

/** One reader's place in an output log. Holds one chunk and one file at most. */
export class OutputReader {
  readonly #log: ReadableLog;
  #position: number;
  #open: OpenSegment | undefined;

  constructor(log: ReadableLog, from: number) {
    this.#log = log;
    this.#position = from;
  }

  get position(): number {
    return this.#position;
  }

  /** The next chunk of what is there; undefined when everything has been read. */
  async next(): Promise<OutputPiece[] | undefined> {
    while (this.#position < this.#log.bytes) {
      const place = this.#open;
      // A file that was dropped meanwhile can still be read to its end.
      if (place !== undefined && this.#position < place.segment.to) {
        const pieces = await this.#readChunk(place);
        if (pieces.length > 0) return pieces;
        continue;
      }
      const segment = this.#log.segmentAt(this.#position);
      if (segment === undefined || segment.from > this.#position) {
        return [this.#skipTo(segment?.from ?? this.#log.bytes)];
      }
      await this.#enter(segment);
    }
    return undefined;
  }

  #skipTo(to: number): OutputPiece {
    const from = this.#position;
    this.#position = to;
    return { type: 'cut', from, to };
  }

  async #enter(segment: Segment): Promise<void> {
    await this[Symbol.asyncDispose]();
    try {
      const file = await open(toSegmentPath(this.#log.folder, segment));
      this.#open = { segment, file, fileAt: 0, byteAt: segment.from };
    } catch (error) {
      // Dropped since we looked: the log knows what comes next.
      if (this.#log.segmentAt(this.#position) === segment) throw error;
    }
  }

  async #readChunk(place: OpenSegment): Promise<OutputPiece[]> {
    const size = Math.min(CHUNK_BYTES, place.segment.fileBytes - place.fileAt);
    const buffer = Buffer.allocUnsafeSlow(size);
    const { bytesRead } = await place.file.read(buffer, 0, size, place.fileAt);
    const chunk = buffer.subarray(0, bytesRead);
    const measured = measureRecords(chunk);
    if (measured.fileBytes === 0) throw new Error(`the output log in ${this.#log.folder} is damaged`);
    const pieces = toPieces(chunk.subarray(0, measured.fileBytes), place.byteAt, this.#position);
    place.fileAt += measured.fileBytes;
    place.byteAt += measured.bytes;
    this.#position = Math.max(this.#position, place.byteAt);
    return pieces;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const file = this.#open?.file;
    this.#open = undefined;
    await file?.close();
  }
}
