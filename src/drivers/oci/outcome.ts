import type { ExecOutcome, KillCause, Usage } from '../../core/exec.ts';

const KILLED = 137;
const KEPT = 256;

/**
 * Reads what the init of a cell writes while it comes: `up`, the shell's own message if a signal ended the program,
 * `exit <code>`. Hostile: the program can write there, too. Noise must not hide the end, and a forged end only
 * tells lies about the forger.
 */
export class StatusReader {
  #tail = '';
  #spoke = false;
  #end: ProgramEnd | undefined;

  push(text: string): void {
    this.#tail += text;
    for (const match of this.#tail.matchAll(/exit (\d{1,3})\n/g)) {
      const code = Number(match[1]);
      const before = this.#tail.slice(0, match.index).replace(/^up\n/, '');
      // The shell says nothing for SIGINT (130) and SIGPIPE (141).
      const signalled = code > 128 && (this.#spoke || before.trim() !== '' || code === 130 || code === 141);
      if (code <= 255) this.#end = { code, signalled };
    }
    if (this.#tail.length <= KEPT) return;
    this.#spoke = true;
    this.#tail = this.#tail.slice(-KEPT);
  }

  get end(): ProgramEnd | undefined {
    return this.#end;
  }
}

export interface ProgramEnd {
  readonly code: number;
  readonly signalled: boolean;
}

/**
 * The outcome of a cell's main program; undefined when the cell was ended by nobody we know of.
 * Whoever had to be killed cannot have the last word: its status may be forged.
 */
export function toOutcome(
  end: ProgramEnd | undefined,
  cause: KillCause | undefined,
  usage: Usage,
): ExecOutcome | undefined {
  if (cause !== undefined)
    return cause === 'cancelled' ? { kind: 'cancelled' } : { kind: 'limit', limit: cause };
  const outOfMemory = usage.reached.includes('memoryBytes');
  if (end === undefined) return outOfMemory ? { kind: 'limit', limit: 'memoryBytes' } : undefined;
  if (end.code === KILLED && end.signalled && outOfMemory) return { kind: 'limit', limit: 'memoryBytes' };
  return end.signalled ? { kind: 'signalled', signal: end.code - 128 } : { kind: 'exited', code: end.code };
}
