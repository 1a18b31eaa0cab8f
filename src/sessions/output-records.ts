export type OutputStream = 'stdout' | 'stderr';

/** A piece of output, or the place of one that is no longer kept. `from` counts the bytes of both streams. */
export type OutputPiece =
  | { readonly type: OutputStream; readonly from: number; readonly bytes: Uint8Array }
  | { readonly type: 'cut'; readonly from: number; readonly to: number };

/** A record is the stream in one byte, the length in four, and the bytes. */
export const HEADER_BYTES = 5;
/** Longer pieces become several records, so that readers know how much room they need. */
export const LONGEST_RECORD = 64 * 1024;

const STREAMS: readonly OutputStream[] = ['stdout', 'stderr'];

export function toHeader(stream: OutputStream, length: number): Buffer {
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  header.writeUInt8(STREAMS.indexOf(stream));
  header.writeUInt32BE(length, 1);
  return header;
}

export interface Record {
  readonly stream: OutputStream;
  /** Where its bytes begin and end in the buffer. */
  readonly start: number;
  readonly end: number;
}

/** The whole records at the beginning of `buffer`; stops at the first one that is torn. */
function* recordsIn(buffer: Buffer): Generator<Record> {
  let at = 0;
  while (at + HEADER_BYTES <= buffer.length) {
    const stream = STREAMS[buffer.readUInt8(at)];
    const length = buffer.readUInt32BE(at + 1);
    const start = at + HEADER_BYTES;
    if (stream === undefined || length === 0 || length > LONGEST_RECORD) return;
    if (start + length > buffer.length) return;
    at = start + length;
    yield { stream, start, end: at };
  }
}

/** What a segment file holds: the bytes of its whole records, those of stderr among them, and where the last one ends. */
export function measureRecords(buffer: Buffer): { bytes: number; stderr: number; fileBytes: number } {
  let bytes = 0;
  let stderr = 0;
  let fileBytes = 0;
  for (const { stream, start, end } of recordsIn(buffer)) {
    bytes += end - start;
    if (stream === 'stderr') stderr += end - start;
    fileBytes = end;
  }
  return { bytes, stderr, fileBytes };
}

/**
 * The output in a buffer of records whose first byte is byte `base` of all output, from byte `from` on. Neighbours of the
 * same stream become one piece. Works in place: the buffer is the pieces' afterwards.
 */
export function toPieces(buffer: Buffer, base: number, from: number): OutputPiece[] {
  const pieces: OutputPiece[] = [];
  let offset = base;
  let run: { stream: OutputStream; from: number; start: number; end: number } | undefined;
  const finishRun = (): void => {
    if (run === undefined) return;
    pieces.push({ type: run.stream, from: run.from, bytes: buffer.subarray(run.start, run.end) });
  };
  for (const { stream, start, end } of recordsIn(buffer)) {
    const skipped = Math.min(Math.max(0, from - offset), end - start);
    const wanted = start + skipped;
    const wantedFrom = offset + skipped;
    offset += end - start;
    if (wanted === end) continue;
    if (run?.stream === stream) {
      buffer.copyWithin(run.end, wanted, end);
      run.end += end - wanted;
    } else {
      finishRun();
      run = { stream, from: wantedFrom, start: wanted, end };
    }
  }
  finishRun();
  return pieces;
}
