import { describeReading, readOutcome, type EndReason } from '../cells/read-outcome.ts';
import type { ExitEvent } from '../cells/run-to-end.ts';
import type { Limits } from '../core/limits.ts';
import type { Denial } from '../wire/permissions.ts';
import type { CodeResult } from './api.ts';
import { toPermissionText } from './permission-text.ts';

export type End = Pick<CodeResult, 'status' | 'exitCode' | 'signal' | 'message' | 'hint'>;

interface Meaning {
  readonly status: CodeResult['status'];
  readonly hint: string | undefined;
}

const MEANINGS: Readonly<Record<EndReason, Meaning>> = {
  exit: { status: 'error', hint: undefined },
  signal: { status: 'error', hint: undefined },
  timeout: { status: 'timeout', hint: 'Send a longer timeout_ms, or let the code do less.' },
  memory: {
    status: 'memory',
    hint: 'Let the code hold less at once, or remove files it does not need; they count, too.',
  },
  output: { status: 'error', hint: 'Write large output to a file, and get it with read_file.' },
  cancelled: { status: 'cancelled', hint: undefined },
};

/** What the fate of the code means for whoever sent it. */
export function toEnd(
  { outcome, usage }: Pick<ExitEvent, 'outcome' | 'usage'>,
  limits: Limits,
  denials: readonly Denial[],
): End {
  const reading = readOutcome(outcome, usage);
  const { exitCode, signal, reason, ok } = reading;
  if (ok) return { status: 'ok', exitCode, signal, message: undefined, hint: undefined };
  const { status, hint } = MEANINGS[reason];
  const [denial] = denials;
  if (status !== 'error' || reason === 'output' || denial === undefined)
    return { status, exitCode, signal, message: describeReading(reading, limits), hint };
  return {
    status: 'denied',
    exitCode,
    signal,
    message: `a permission is missing: ${toPermissionText(denial.permission)}`,
    hint: 'Grant it with grant_permission and run the code again.',
  };
}
