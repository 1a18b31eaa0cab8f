import { describeReading, readOutcome, type EndBounds } from '../cells/read-outcome.ts';
import type { ExecOutcome } from '../core/exec.ts';
import type { CappedBytes } from '../lib/capped-bytes.ts';
import type { KeptOutput } from './run.ts';

const KiB = 1024;

/** One line for people that says why a program was ended; undefined when it ended by itself. */
export function toEndMessage(outcome: ExecOutcome, bounds: EndBounds): string | undefined {
  return outcome.kind === 'limit'
    ? `[Execution ${describeReading(readOutcome(outcome), bounds)}]`
    : undefined;
}

/** Kept output as text, with what has to be said about it in lines of its own; the mark of a cut is the last one. */
export function toKeptOutput(bytes: CappedBytes, keptBytes: number, message: string | undefined): KeptOutput {
  const lines = [message, bytes.truncated ? `[Output truncated at ${keptBytes / KiB}KB limit]` : undefined];
  let text = bytes.text();
  for (const line of lines) {
    if (line === undefined) continue;
    if (text !== '' && !text.endsWith('\n')) text += '\n';
    text += line;
  }
  return { text, totalBytes: bytes.total, truncated: bytes.truncated };
}
