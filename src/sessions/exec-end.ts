import { describeReading, readOutcome, type EndBounds, type EndReason } from '../cells/read-outcome.ts';
import type { ExecOutcome, Usage } from '../core/exec.ts';
import type { Limits } from '../core/limits.ts';
import type { LimitReached } from '../core/session-words.ts';
import type { ExecResult } from './stored-exec.ts';

/** Who asked for the end of a command. */
export type KilledBy = 'request' | 'session_deleted' | 'session_expired' | 'output_log';

/** What is known about the end of a command beside what the cell says. */
export interface EndContext {
  readonly killedBy: KilledBy | undefined;
  /** It had reached its time, and was asked to end. */
  readonly timedOut: boolean;
  readonly timeoutMs: number | undefined;
  readonly limits: Limits;
}

export type EndReport = Pick<ExecResult, 'end' | 'exitCode' | 'ok' | 'limitsReached'>;

/** The exit code of commands of whose end nobody knows more. */
export const UNKNOWN_EXIT_CODE = -1;
const FULL = 0.99;

/** Nobody ends a command of a session for its output: the log keeps what it can. */
const REASONS = {
  exit: 'exit',
  signal: 'signal',
  timeout: 'timeout',
  memory: 'memory',
  output: 'killed',
  cancelled: 'killed',
} as const satisfies Record<EndReason, ExecResult['end']['reason']>;

/** What the fate of a command means for whoever sent it. */
export function toEndReport(outcome: ExecOutcome, usage: Usage, context: EndContext): EndReport {
  const reading = readOutcome(toFate(outcome, context), usage);
  if (reading.reason === 'cancelled') return toKilledEnd(context.killedBy ?? 'request');
  const { exitCode, ok, reason } = reading;
  const limitsReached = toLimitsReached(outcome, usage, ok);
  const notes = ok
    ? []
    : limitsReached.filter((limit) => limit !== reason).map((limit) => LIMIT_NOTES[limit]);
  const message = [describeReading(reading, toBounds(context)), ...notes].join('; ');
  // Nobody kills at these limits: a program gets an error, and most fail of it.
  const cause = limitsReached.find((limit) => limit !== 'memory');
  const isAsked = reason === 'timeout' && outcome.kind !== 'limit';
  return {
    end: {
      reason: reason === 'exit' && !ok && cause !== undefined ? cause : REASONS[reason],
      message,
      signal: isAsked ? 'SIGTERM' : (reading.signal ?? null),
      killedBy: null,
    },
    exitCode,
    ok,
    limitsReached,
  };
}

/** The outcome with what only we know of it. */
function toFate(outcome: ExecOutcome, { killedBy, timedOut }: EndContext): ExecOutcome {
  // A command that ended by itself before the kill reached it ended by itself; but nobody is told of success whose output
  // is lost.
  const isKilled = outcome.kind !== 'exited' || killedBy === 'output_log';
  if (killedBy !== undefined && isKilled) return { kind: 'cancelled' };
  return timedOut && outcome.kind !== 'cancelled' ? { kind: 'limit', limit: 'wallTimeMs' } : outcome;
}

function toBounds({ limits, timeoutMs = 0 }: EndContext): EndBounds {
  return { ...limits, wallTimeMs: timeoutMs };
}

const LIMIT_NOTES = {
  memory: 'the kernel killed processes because the memory of the session was used up',
  processes: 'the session had as many processes as it may have',
  disk: 'the disk of the session is full',
} as const;

const KILLED_MESSAGES: Readonly<Record<KilledBy, string>> = {
  request: 'killed on request',
  session_deleted: 'killed because the session was deleted',
  session_expired: 'killed because the session expired',
  output_log: 'killed because its output could not be stored: the disk of the server is full or broken',
};

function toLimitsReached(outcome: ExecOutcome, usage: Usage, ok: boolean): LimitReached[] {
  const memory =
    usage.reached.includes('memoryBytes') || (outcome.kind === 'limit' && outcome.limit === 'memoryBytes');
  // A full disk is only worth a word when something went wrong.
  const disk = !ok && (usage.diskShare ?? 0) >= FULL;
  return [
    ...(memory ? (['memory'] as const) : []),
    ...(usage.reached.includes('processes') ? (['processes'] as const) : []),
    ...(disk ? (['disk'] as const) : []),
  ];
}

/** The end of a command that the cell cannot tell us of. */
export function toLostEnd(
  reason: 'cell_lost' | 'memory' | 'server_restarted' | 'start_failed',
  message: string,
): EndReport {
  return {
    end: { reason, message, signal: null, killedBy: null },
    exitCode: UNKNOWN_EXIT_CODE,
    ok: false,
    limitsReached: reason === 'memory' ? ['memory'] : [],
  };
}

/** The end of a command that was killed, though the cell did not live to say so, or it never began. */
export function toKilledEnd(by: KilledBy): EndReport {
  return {
    end: { reason: 'killed', message: KILLED_MESSAGES[by], signal: 'SIGKILL', killedBy: by },
    exitCode: readOutcome({ kind: 'cancelled' }).exitCode,
    ok: false,
    limitsReached: [],
  };
}
