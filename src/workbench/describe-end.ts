import { constants } from 'node:os';
import type { Limits } from '../core/limits.ts';
import type { Denial } from '../wire/permissions.ts';
import type { CodeResult } from './api.ts';
import { toPermissionText } from './permission-text.ts';
import type { ExitEvent } from './supervise.ts';

export type End = Pick<CodeResult, 'status' | 'exitCode' | 'signal' | 'message' | 'hint'>;

const SIGNAL_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name]),
);
/** What a shell says of a program that SIGKILL ended. */
const SHELL_KILLED = 128 + constants.signals.SIGKILL;

/** What the fate of the code means for whoever sent it. */
export function toEnd(
  { outcome, usage }: Pick<ExitEvent, 'outcome' | 'usage'>,
  limits: Limits,
  denials: readonly Denial[],
): End {
  const killed = { exitCode: undefined, signal: 'SIGKILL' } as const;
  if (outcome.kind === 'cancelled') return { ...killed, ...CANCELLED };
  if (outcome.kind === 'limit' && outcome.limit === 'wallTimeMs') {
    return {
      ...killed,
      status: 'timeout',
      message: `timeout: the code was killed after ${limits.wallTimeMs / 1000} s`,
      hint: 'Send a longer timeout_ms, or let the code do less.',
    };
  }
  if (outcome.kind === 'limit' && outcome.limit === 'outputBytes') {
    return {
      ...killed,
      status: 'error',
      message: `the code was killed: more than ${limits.outputBytes} bytes of output`,
      hint: 'Write large output to a file, and get it with read_file.',
    };
  }
  if (isOutOfMemory(outcome, usage.reached)) {
    return {
      ...killed,
      status: 'memory',
      message: `the code was killed: more than ${Math.floor(limits.memoryBytes / 1024 / 1024)} MB of memory, files included`,
      hint: 'Let the code hold less at once, or remove files it does not need.',
    };
  }
  const own = toOwnEnd(outcome);
  const [denial] = denials;
  if (own.status === 'ok' || denial === undefined) return own;
  return {
    ...own,
    status: 'denied',
    message: `a permission is missing: ${toPermissionText(denial.permission)}`,
    hint: 'Grant it with grant_permission and run the code again.',
  };
}

export const CANCELLED = {
  status: 'cancelled',
  message: 'the run was cancelled',
  hint: undefined,
} as const;

function isOutOfMemory(outcome: ExitEvent['outcome'], reached: readonly string[]): boolean {
  if (outcome.kind === 'limit') return outcome.limit === 'memoryBytes';
  if (!reached.includes('memoryBytes')) return false;
  if (outcome.kind === 'signalled') return outcome.signal === constants.signals.SIGKILL;
  return outcome.kind === 'exited' && outcome.code === SHELL_KILLED;
}

function toOwnEnd(outcome: ExitEvent['outcome']): End {
  if (outcome.kind === 'exited') {
    const { code } = outcome;
    const message = code === 0 ? undefined : `the code ended with exit code ${code}`;
    return {
      status: code === 0 ? 'ok' : 'error',
      exitCode: code,
      signal: undefined,
      message,
      hint: undefined,
    };
  }
  const number = outcome.kind === 'signalled' ? outcome.signal : constants.signals.SIGKILL;
  const signal = SIGNAL_NAMES.get(number) ?? `signal ${number}`;
  return {
    status: 'error',
    exitCode: undefined,
    signal,
    message: `the code was ended by ${signal}`,
    hint: undefined,
  };
}
