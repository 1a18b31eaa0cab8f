import { wholeCharacters } from '../lib/capped-bytes.ts';
import type { OutputPart } from './api.ts';
import type { ExecResult } from './stored-exec.ts';
import type { OutputLog } from './output-log.ts';
import type { OutputPiece, OutputStream } from './output-records.ts';

/** A part of the output, with all that was cut from it, and the result with the last part. */
export async function readPart(
  log: OutputLog,
  from: number,
  limitBytes: number,
  result: ExecResult | undefined,
): Promise<OutputPart> {
  const chunks: { stream: OutputStream; from: number; bytes: Uint8Array }[] = [];
  const cut: { from: number; to: number }[] = [];
  let next = Math.min(from, log.bytes);
  for await (const piece of log.read(next, limitBytes)) {
    next = endOf(piece);
    if (piece.type === 'cut') cut.push({ from: piece.from, to: piece.to });
    else chunks.push({ stream: piece.type, from: piece.from, bytes: piece.bytes });
  }
  const isLast = result !== undefined && next >= log.bytes;
  const last = chunks.at(-1);
  if (!isLast && last !== undefined && next === last.from + last.bytes.length) {
    // The rest of a character that is still to come belongs to the next reply, unless there is nothing else.
    const whole = wholeCharacters(last.bytes);
    if (whole > 0) {
      next = last.from + whole;
      last.bytes = last.bytes.subarray(0, whole);
    }
  }
  return { from, next, chunks, cut, result: isLast ? result : undefined };
}

function endOf(piece: OutputPiece): number {
  return piece.type === 'cut' ? piece.to : piece.from + piece.bytes.length;
}
