import type { FileHandle } from 'node:fs/promises';

const CHUNK = 64 * 1024;
/** What is longer is no line of ours, and is left out. */
export const LONGEST_LINE = 1024 ** 2;
const NEWLINE = 0x0a;

/** Lines of a file before byte `end`, the last one first, in bounded memory. `end` is 0 or stands after a line end. */
export async function* linesBackward(file: FileHandle, end: number): AsyncGenerator<string> {
  /** What is known of the line that is being read: its pieces, the first one first. */
  let pieces: Buffer[] = [];
  let length = 0;
  const keep = (piece: Buffer): void => {
    length += piece.length;
    if (length <= LONGEST_LINE) pieces.unshift(piece);
    else pieces = [];
  };
  const take = (): string | undefined => {
    const line = length > LONGEST_LINE ? undefined : Buffer.concat(pieces).toString();
    pieces = [];
    length = 0;
    return line;
  };
  for (let position = end; position > 0;) {
    const start = Math.max(0, position - CHUNK);
    const chunk = await readExactly(file, start, position - start);
    let stop = chunk.length;
    for (let cut = chunk.lastIndexOf(NEWLINE); cut >= 0; cut = chunk.lastIndexOf(NEWLINE, cut - 1)) {
      keep(chunk.subarray(cut + 1, stop));
      const line = take();
      if (line !== undefined && line !== '') yield line;
      stop = cut;
      if (cut === 0) break;
    }
    keep(chunk.subarray(0, stop));
    position = start;
  }
  const first = take();
  if (first !== undefined && first !== '') yield first;
}

/** Lines from byte `from` up to the last line end before `to`; tells how far it came. */
export async function* linesForward(
  file: FileHandle,
  range: { readonly from: number; readonly to: number },
): AsyncGenerator<{ readonly line: string; readonly next: number }> {
  let pieces: Buffer[] = [];
  let length = 0;
  for (let position = range.from; position < range.to;) {
    const chunk = await readExactly(file, position, Math.min(CHUNK, range.to - position));
    if (chunk.length === 0) return;
    let start = 0;
    for (let cut = chunk.indexOf(NEWLINE); cut >= 0; cut = chunk.indexOf(NEWLINE, start)) {
      pieces.push(chunk.subarray(start, cut));
      length += cut - start;
      const line = length > LONGEST_LINE ? '' : Buffer.concat(pieces).toString();
      pieces = [];
      length = 0;
      start = cut + 1;
      yield { line, next: position + start };
    }
    length += chunk.length - start;
    if (length > LONGEST_LINE) pieces = [];
    else pieces.push(chunk.subarray(start));
    position += chunk.length;
  }
}

/** Where the last whole line before `size` ends: the rest is still being written. */
export async function endOfLines(file: FileHandle, size: number): Promise<number> {
  for (let position = size; position > 0;) {
    const start = Math.max(0, position - CHUNK);
    const cut = (await readExactly(file, start, position - start)).lastIndexOf(NEWLINE);
    if (cut >= 0) return start + cut + 1;
    position = start;
  }
  return 0;
}

async function readExactly(file: FileHandle, start: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, start + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
