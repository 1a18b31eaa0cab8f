import type { ExecOutcome } from '../core/exec.ts';
import type { CappedBytes } from '../lib/capped-bytes.ts';
import type { KeptOutput } from './run.ts';

const KiB = 1024;

export interface EndBounds {
  readonly wallTimeMs: number;
  readonly memoryBytes: number;
  readonly outputBytes: number;
}

/** The number a shell would show for an outcome. */
export function toExitCode(outcome: ExecOutcome): number {
  switch (outcome.kind) {
    case 'exited':
      return outcome.code;
    case 'signalled':
      return 128 + outcome.signal;
    case 'limit':
      return outcome.limit === 'wallTimeMs' ? 124 : 137;
    case 'cancelled':
      return 130;
  }
}

/** One line for people that says why a program was ended; undefined when it ended by itself. */
export function toEndMessage(outcome: ExecOutcome, bounds: EndBounds): string | undefined {
  if (outcome.kind !== 'limit') return undefined;
  switch (outcome.limit) {
    case 'wallTimeMs':
      return `[Execution timed out after ${bounds.wallTimeMs / 1000} seconds]`;
    case 'memoryBytes':
      return `[Execution killed: out of memory, limit ${Math.floor(bounds.memoryBytes / KiB / KiB)} MB]`;
    case 'outputBytes':
      return `[Execution killed: more than ${Math.floor(bounds.outputBytes / KiB)} KB of output]`;
  }
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
