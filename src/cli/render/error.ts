import type { HotcellError } from '../../core/errors.ts';
import type { ErrorReply } from '../../wire/execute.ts';
import type { Terminal } from '../terminal.ts';

/** `hotcell: <what>` and `  → <what to do>`; the stack only for those who asked to see everything. */
export function renderError(
  terminal: Terminal,
  error: HotcellError,
  options: { json: boolean; debug: boolean },
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
  terminal.note(`hotcell: ${error.message}`);
  for (const line of error.hint.split('\n')) terminal.note(`  → ${line}`);
  if (options.debug) terminal.note(stackOf(error));
}

function stackOf(error: Error): string {
  const stack = error.stack ?? error.message;
  return error.cause instanceof Error ? `${stack}\ncaused by ${stackOf(error.cause)}` : stack;
}
