import type { ExecOutcome, KillCause, Usage } from '../../core/exec.ts';

const KILLED = 137;

/** What the init of a cell wrote: `up`, the shell's own message if a signal ended the program, `exit <code>`. */
export function parseStatus(status: string): { code: number; signalled: boolean } | undefined {
  const match = /(?:^|\n)exit (\d{1,3})\n?$/.exec(status);
  if (match === null) return undefined;
  const code = Number(match[1]);
  if (code > 255) return undefined;
  // The shell says nothing for SIGINT (130) and SIGPIPE (141).
  const spoke =
    status
      .slice(0, match.index)
      .replace(/^up(\n|$)/, '')
      .trim() !== '';
  return { code, signalled: code > 128 && (spoke || code === 130 || code === 141) };
}

/**
 * The outcome of a cell's main program; undefined when the cell was ended by nobody we know of.
 * A status that arrived tells what happened even if somebody was about to kill.
 */
export function toOutcome(
  status: string,
  cause: KillCause | undefined,
  usage: Usage,
): ExecOutcome | undefined {
  const parsed = parseStatus(status);
  const outOfMemory = usage.reached.includes('memoryBytes');
  if (parsed === undefined) {
    if (cause !== undefined)
      return cause === 'cancelled' ? { kind: 'cancelled' } : { kind: 'limit', limit: cause };
    return outOfMemory ? { kind: 'limit', limit: 'memoryBytes' } : undefined;
  }
  if (parsed.code === KILLED && parsed.signalled && outOfMemory)
    return { kind: 'limit', limit: 'memoryBytes' };
  return parsed.signalled
    ? { kind: 'signalled', signal: parsed.code - 128 }
    : { kind: 'exited', code: parsed.code };
}
