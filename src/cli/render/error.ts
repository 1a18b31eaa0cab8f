import type { ErrorReply } from '../../wire/execute.ts';
import type { Terminal } from '../terminal.ts';
import { toPrintable } from '../../lib/printable.ts';

/** What every error of ours has: HotcellError, and RunnerError of the client. */
export interface Failure extends Error {
  readonly code: string;
  readonly hint: string;
  readonly field: string | undefined;
}

/** `hotcell: <what>` and `  → <what to do>`; the stack only for those who asked to see everything. */
export function renderError(
  terminal: Terminal,
  error: Failure,
  options: { program?: string; json: boolean; debug: boolean },
): void {
  if (options.json) {
    const reply: ErrorReply = {
      detail: error.message,
      code: error.code,
      hint: error.hint,
      ...(error.field === undefined ? {} : { field: error.field }),
    };
    terminal.json(reply);
  }
  // SECURITY: a message may name files of a cell, and names may hold commands for the terminal.
  terminal.note(`${options.program ?? 'hotcell'}: ${toPrintable(error.message)}`);
  // Indented lines are commands that belong to the line before, to be copied.
  for (const line of error.hint.split('\n'))
    terminal.note(line.startsWith(' ') ? `  ${toPrintable(line)}` : `  → ${toPrintable(line)}`);
  if (options.debug) terminal.note(stackOf(error));
}

function stackOf(error: Error): string {
  const stack = error.stack ?? error.message;
  return error.cause instanceof Error ? `${stack}\ncaused by ${stackOf(error.cause)}` : stack;
}
