import { constants } from 'node:os';
import type { ExecOutcome, Usage } from '../core/exec.ts';
import type { Limits } from '../core/limits.ts';
import type { ExecEnd, ExecResult } from '../wire/session-exec.ts';

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

export interface EndReport {
  readonly end: ExecEnd;
  readonly exitCode: number;
  readonly ok: boolean;
  readonly limitsReached: ExecResult['limits_reached'];
}

/** The exit code of commands of whose end nobody knows more. */
export const UNKNOWN_EXIT_CODE = -1;
const TIMEOUT_EXIT_CODE = 124;
/** What a shell says of a program that SIGKILL ended. */
const SHELL_KILLED = 128 + constants.signals.SIGKILL;
const FULL = 0.99;

const SIGNAL_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name]),
);

/** What the fate of a command means for whoever sent it. */
export function toEndReport(outcome: ExecOutcome, usage: Usage, context: EndContext): EndReport {
  const end = toEnd(outcome, usage, context);
  const exitCode = toExitCode(end.reason, outcome);
  const ok = end.reason === 'exit' && exitCode === 0;
  const limitsReached = toLimitsReached(outcome, usage, ok);
  const notes = ok
    ? []
    : limitsReached.filter((limit) => limit !== end.reason).map((limit) => LIMIT_NOTES[limit]);
  const message = [end.message, ...notes].join('; ');
  // Nobody kills at these limits: a program gets an error, and most fail of it.
  const cause = limitsReached.find((limit) => limit !== 'memory');
  const reason = end.reason === 'exit' && !ok && cause !== undefined ? cause : end.reason;
  return { end: { ...end, reason, message }, exitCode, ok, limitsReached };
}

const LIMIT_NOTES = {
  memory: 'the kernel killed processes because the memory of the session was used up',
  processes: 'the session had as many processes as it may have',
  disk: 'the disk of the session is full',
} as const;

function toExitCode(reason: ExecEnd['reason'], outcome: ExecOutcome): number {
  if (reason === 'timeout') return TIMEOUT_EXIT_CODE;
  if (outcome.kind === 'exited') return outcome.code;
  return 128 + (outcome.kind === 'signalled' ? outcome.signal : constants.signals.SIGKILL);
}

function toEnd(outcome: ExecOutcome, usage: Usage, context: EndContext): ExecEnd {
  // A command that ended by itself before the kill reached it ended by itself.
  const { killedBy } = context;
  if (outcome.kind === 'cancelled' || (killedBy !== undefined && outcome.kind !== 'exited')) {
    return toKilledEnd(killedBy ?? 'request').end;
  }
  if (context.timedOut || (outcome.kind === 'limit' && outcome.limit === 'wallTimeMs')) {
    const message = `ended after ${(context.timeoutMs ?? 0) / 1000} s (timeout_s)`;
    const signal = outcome.kind === 'limit' ? 'SIGKILL' : 'SIGTERM';
    return { reason: 'timeout', message, signal, killed_by: null };
  }
  if (outcome.kind === 'signalled') {
    const signal = SIGNAL_NAMES.get(outcome.signal) ?? `signal ${outcome.signal}`;
    return { reason: 'signal', message: `ended by ${signal}`, signal, killed_by: null };
  }
  // The shell of a command outlives the program that was killed, and tells of it in its own way.
  const outOfMemory =
    outcome.kind === 'limit' || (outcome.code === SHELL_KILLED && usage.reached.includes('memoryBytes'));
  if (outOfMemory) {
    const megabytes = Math.floor(context.limits.memoryBytes / 1024 / 1024);
    const message = `the kernel killed it: more than the ${megabytes} MB of memory of the session`;
    return { reason: 'memory', message, signal: 'SIGKILL', killed_by: null };
  }
  return { reason: 'exit', message: `ended with exit code ${outcome.code}`, signal: null, killed_by: null };
}

const KILLED_MESSAGES: Readonly<Record<KilledBy, string>> = {
  request: 'killed on request',
  session_deleted: 'killed because the session was deleted',
  session_expired: 'killed because the session expired',
  output_log: 'killed because its output could not be stored: the disk of the server is full or broken',
};

function toLimitsReached(outcome: ExecOutcome, usage: Usage, ok: boolean): ExecResult['limits_reached'] {
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
    end: { reason, message, signal: null, killed_by: null },
    exitCode: UNKNOWN_EXIT_CODE,
    ok: false,
    limitsReached: reason === 'memory' ? ['memory'] : [],
  };
}

/** The end of a command that was killed, though the cell did not live to say so, or it never began. */
export function toKilledEnd(by: KilledBy): EndReport {
  return {
    end: { reason: 'killed', message: KILLED_MESSAGES[by], signal: 'SIGKILL', killed_by: by },
    exitCode: 128 + constants.signals.SIGKILL,
    ok: false,
    limitsReached: [],
  };
}
