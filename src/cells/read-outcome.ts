import { constants } from 'node:os';
import type { ExecOutcome, Usage } from '../core/exec.ts';
import { CANCELLED_CODE, codeOfSignal, TIMEOUT_CODE } from '../core/exit-code.ts';

/** Why a program ended, in one word. Doors may know more reasons; they never know these by another name. */
export type EndReason = 'exit' | 'signal' | 'timeout' | 'memory' | 'output' | 'cancelled';

/** What an outcome means, the same for every door. */
export interface Reading {
  readonly reason: EndReason;
  /** The number that a shell would show. */
  readonly exitCode: number;
  /** The name of the signal that ended it. */
  readonly signal: string | undefined;
  /** It ended by itself and says that all went well. */
  readonly ok: boolean;
}

const KILLED_CODE = codeOfSignal(constants.signals.SIGKILL);

/**
 * The one table of outcomes. With `usage` it also tells what the outcome alone does not: the shell around a program that
 * the kernel killed for its memory outlives it, and tells of it in its own way.
 */
export function readOutcome(outcome: ExecOutcome, usage?: Pick<Usage, 'reached'>): Reading {
  if (usage?.reached.includes('memoryBytes') === true && looksKilled(outcome))
    return killedFor('memory', KILLED_CODE);
  switch (outcome.kind) {
    case 'exited':
      return { reason: 'exit', exitCode: outcome.code, signal: undefined, ok: outcome.code === 0 };
    case 'signalled': {
      const exitCode = codeOfSignal(outcome.signal);
      return { reason: 'signal', exitCode, signal: toSignalName(outcome.signal), ok: false };
    }
    case 'limit':
      if (outcome.limit === 'wallTimeMs') return killedFor('timeout', TIMEOUT_CODE);
      return killedFor(outcome.limit === 'memoryBytes' ? 'memory' : 'output', KILLED_CODE);
    case 'cancelled':
      return killedFor('cancelled', CANCELLED_CODE);
  }
}

function looksKilled(outcome: ExecOutcome): boolean {
  return outcome.kind === 'signalled'
    ? outcome.signal === constants.signals.SIGKILL
    : outcome.kind === 'exited' && outcome.code === KILLED_CODE;
}

function killedFor(reason: EndReason, exitCode: number): Reading {
  return { reason, exitCode, signal: 'SIGKILL', ok: false };
}

const SIGNAL_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name]),
);

function toSignalName(signal: number): string {
  return SIGNAL_NAMES.get(signal) ?? `signal ${signal}`;
}

const KiB = 1024;

export interface EndBounds {
  readonly wallTimeMs: number;
  readonly memoryBytes: number;
  readonly outputBytes: number;
}

/** The same in words for people, without a subject. */
export function describeReading({ reason, exitCode, signal }: Reading, bounds: EndBounds): string {
  switch (reason) {
    case 'exit':
      return `ended with exit code ${exitCode}`;
    case 'signal':
      return `ended by ${signal}`;
    case 'timeout': {
      const seconds = bounds.wallTimeMs / 1000;
      return `timed out after ${seconds} second${seconds === 1 ? '' : 's'}`;
    }
    case 'memory':
      return `killed: out of memory, limit ${Math.floor(bounds.memoryBytes / KiB / KiB)} MB`;
    case 'output':
      return `killed: more than ${Math.floor(bounds.outputBytes / KiB)} KB of output`;
    case 'cancelled':
      return 'cancelled';
  }
}
