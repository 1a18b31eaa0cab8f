import { closeSync, mkdirSync, openSync, writev, writevSync } from 'node:fs';
import { rm, unlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import {
  HEADER_BYTES,
  LONGEST_RECORD,
  toHeader,
  type OutputPiece,
  type OutputStream,
} from './output-records.ts';
import { OutputReader } from './output-reader.ts';
import {
  measureSegments,
  toSegmentBytes,
  toSegmentPath,
  type OutputBounds,
  type Segment,
} from './output-segments.ts';

/** Up to here a write to the page cache is sooner done than handed to another thread. */
const AT_ONCE_BYTES = 64 * 1024;
const writevLater = promisify(writev);

/**
 * All output of one command, on disk, within bounds: the beginning and the end are kept, and what was cut between them is
 * told exactly. One writer, any number of readers; no reader ever holds up the writer.
 */
export class OutputLog {
  readonly #folder: string;
  readonly #bounds: OutputBounds;
  readonly #segmentBytes: number;
  readonly #segments: Segment[];
  /** Wakes the readers who have read everything. */
  readonly #waiting = new Set<() => void>();
  /** Segments at the beginning that stay; undefined as long as there is room for more of them. */
  #headCount: number | undefined;
  #descriptor: number | undefined;
  #bytes = 0;
  #stderrBytes = 0;
  #diskBytes = 0;
  #finished = false;
  #failed = false;
  #isClosed = false;

  private constructor(folder: string, bounds: OutputBounds, segments: Segment[]) {
    this.#folder = folder;
    this.#bounds = bounds;
    this.#segmentBytes = toSegmentBytes(bounds);
    this.#segments = segments;
  }

  /** Nothing is made on disk before the first byte. */
  static create(folder: string, bounds: OutputBounds): OutputLog {
    return new OutputLog(folder, bounds, []);
  }

  /** What an earlier life of the server has written; a record that it did not finish is cut off. */
  static async reopen(folder: string, bounds: OutputBounds): Promise<OutputLog> {
    const { segments, stderrBytes } = await measureSegments(folder, bounds);
    const log = new OutputLog(folder, bounds, segments);
    log.#bytes = segments.at(-1)?.to ?? 0;
    log.#stderrBytes = stderrBytes;
    for (const { fileBytes } of segments) log.#diskBytes += fileBytes;
    log.#settleHead();
    return log;
  }

  /** Bytes of both streams so far, also those no longer kept. */
  get bytes(): number {
    return this.#bytes;
  }

  get stderrBytes(): number {
    return this.#stderrBytes;
  }

  get diskBytes(): number {
    return this.#diskBytes;
  }

  get finished(): boolean {
    return this.#finished;
  }

  get folder(): string {
    return this.#folder;
  }

  /** Resolves when the bytes would survive the end of this process. One at a time. */
  async append(stream: OutputStream, bytes: Uint8Array): Promise<void> {
    if (this.#failed) throw new Error('an earlier piece of it could not be written');
    // Until it is known to have gone well: after half a record nothing more may be written.
    this.#failed = true;
    let rest = bytes;
    while (rest.length > 0) {
      const { descriptor, room } = this.#openSegment();
      const part = rest.subarray(0, Math.min(LONGEST_RECORD, room));
      rest = rest.subarray(part.length);
      const parts = [toHeader(stream, part.length), part];
      const written =
        this.#bytes < AT_ONCE_BYTES
          ? writevSync(descriptor, parts)
          : (await writevLater(descriptor, parts)).bytesWritten;
      this.#note(stream, part.length, written);
    }
    this.#failed = false;
  }

  #note(stream: OutputStream, length: number, written: number): void {
    const last = this.#segments.at(-1);
    if (written !== length + HEADER_BYTES || last === undefined) throw new Error('the disk is full');
    last.to += length;
    last.fileBytes += written;
    this.#diskBytes += written;
    this.#bytes += length;
    if (stream === 'stderr') this.#stderrBytes += length;
    this.#wake();
  }

  /** With room for so many bytes of a record. */
  #openSegment(): { readonly descriptor: number; readonly room: number } {
    const last = this.#segments.at(-1);
    const room = this.#segmentBytes - HEADER_BYTES - (last?.fileBytes ?? 0);
    if (last !== undefined && room > 0) {
      this.#descriptor ??= openSync(toSegmentPath(this.#folder, last), 'a', 0o600);
      return { descriptor: this.#descriptor, room };
    }
    if (last === undefined) mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    this.#closeDescriptor();
    this.#makeRoom();
    const segment = { from: this.#bytes, to: this.#bytes, stderrBefore: this.#stderrBytes, fileBytes: 0 };
    this.#descriptor = openSync(toSegmentPath(this.#folder, segment), 'ax', 0o600);
    this.#segments.push(segment);
    return { descriptor: this.#descriptor, room: this.#segmentBytes - HEADER_BYTES };
  }

  #settleHead(): void {
    let bytes = 0;
    for (const [index, { fileBytes }] of this.#segments.entries()) {
      bytes += fileBytes;
      if (bytes + this.#segmentBytes > this.#bounds.headBytes) {
        this.#headCount ??= index + 1;
        return;
      }
    }
  }

  /** Drops what was kept longest after the beginning, until one more segment fits. */
  #makeRoom(): void {
    if (this.#headCount === undefined) this.#settleHead();
    if (this.#headCount === undefined) return;
    let tail = 0;
    for (const { fileBytes } of this.#segments.slice(this.#headCount)) tail += fileBytes;
    while (tail + this.#segmentBytes > this.#bounds.tailBytes) {
      // From the list first: a reader who finds no file knows where to go on.
      const [dropped] = this.#segments.splice(this.#headCount, 1);
      if (dropped === undefined) return;
      tail -= dropped.fileBytes;
      this.#diskBytes -= dropped.fileBytes;
      unlink(toSegmentPath(this.#folder, dropped)).catch(() => {});
    }
  }

  /** The segment that has this byte, or the next one after it. */
  segmentAt(byte: number): Segment | undefined {
    return this.#segments.find(({ to }) => to > byte);
  }

  /** Everything from this byte on, also what is still to come, until `finish`; ends early with `signal`. */
  async *follow(from: number, signal: AbortSignal): AsyncGenerator<OutputPiece> {
    await using reader = new OutputReader(this, from);
    while (!signal.aborted && !this.#isClosed) {
      const pieces = await reader.next();
      if (pieces !== undefined) yield* pieces;
      else if (this.#finished) return;
      else await this.#untilMore(reader.position, signal);
    }
  }

  /** What there is from this byte on, until `limitBytes` are exceeded. */
  async *read(from: number, limitBytes: number): AsyncGenerator<OutputPiece> {
    await using reader = new OutputReader(this, from);
    const end = this.#bytes;
    let count = 0;
    while (count < limitBytes && reader.position < end) {
      for (const piece of (await reader.next()) ?? []) {
        if (piece.type !== 'cut') count += piece.bytes.length;
        yield piece;
      }
    }
  }

  #untilMore(position: number, signal: AbortSignal): Promise<void> {
    // Since the reader looked, things may have happened.
    const hasNews = position < this.#bytes || this.#finished || this.#isClosed || signal.aborted;
    if (hasNews) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  /** No more output. */
  finish(): void {
    this.#finished = true;
    this.#closeDescriptor();
    this.#wake();
  }

  /** Lets go of files and readers without an end: another life of the server goes on. */
  close(): void {
    this.#isClosed = true;
    this.#closeDescriptor();
    this.#wake();
  }

  /** Removes it from disk; readers are told that the rest is cut. */
  async remove(): Promise<void> {
    this.finish();
    const wasMade = this.#segments.length > 0;
    this.#segments.length = 0;
    this.#diskBytes = 0;
    if (wasMade) await rm(this.#folder, { recursive: true, force: true });
  }

  #closeDescriptor(): void {
    if (this.#descriptor === undefined) return;
    closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}
