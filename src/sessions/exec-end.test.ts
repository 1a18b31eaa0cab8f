import { describe, expect, test } from 'vitest';
import type { ExecOutcome, Usage } from '../core/exec.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { toEndReport, type EndContext } from './exec-end.ts';

const USAGE: Usage = { cpuMs: 1, peakMemoryBytes: undefined, reached: [] };
const CONTEXT: EndContext = {
  killedBy: undefined,
  timedOut: false,
  timeoutMs: 600_000,
  limits: DEFAULT_LIMITS,
};

function reported(
  outcome: ExecOutcome,
  usage: Partial<Usage> = {},
  context: Partial<EndContext> = {},
): unknown[] {
  const { end, exitCode, ok, limitsReached } = toEndReport(
    outcome,
    { ...USAGE, ...usage },
    { ...CONTEXT, ...context },
  );
  return [end.reason, exitCode, ok, limitsReached, end.signal, end.killedBy];
}

const exited = (code: number): ExecOutcome => ({ kind: 'exited', code });
const memory = { reached: ['memoryBytes'] } as const;

describe('the end of a command', () => {
  test.each([
    ['exit 0', reported(exited(0)), ['exit', 0, true, [], null, null]],
    ['exit 3', reported(exited(3)), ['exit', 3, false, [], null, null]],
    ['SIGSEGV', reported({ kind: 'signalled', signal: 11 }), ['signal', 139, false, [], 'SIGSEGV', null]],
    [
      'an unknown signal',
      reported({ kind: 'signalled', signal: 50 }),
      ['signal', 178, false, [], 'signal 50', null],
    ],
    [
      'SIGKILL at the timeout',
      reported({ kind: 'limit', limit: 'wallTimeMs' }, {}, { timedOut: true }),
      ['timeout', 124, false, [], 'SIGKILL', null],
    ],
    [
      'exit 0 after SIGTERM at the timeout',
      reported(exited(0), {}, { timedOut: true }),
      ['timeout', 124, false, [], 'SIGTERM', null],
    ],
    [
      'a kill on request',
      reported({ kind: 'cancelled' }, {}, { killedBy: 'request' }),
      ['killed', 130, false, [], 'SIGKILL', 'request'],
    ],
    [
      'a kill after the timeout',
      reported({ kind: 'cancelled' }, {}, { killedBy: 'request', timedOut: true }),
      ['killed', 130, false, [], 'SIGKILL', 'request'],
    ],
    [
      'a kill that came too late',
      reported(exited(0), {}, { killedBy: 'request' }),
      ['exit', 0, true, [], null, null],
    ],
    [
      'output that could not be stored, and then an end of its own',
      reported(exited(0), {}, { killedBy: 'output_log' }),
      ['killed', 130, false, [], 'SIGKILL', 'output_log'],
    ],
    [
      'no memory',
      reported({ kind: 'limit', limit: 'memoryBytes' }),
      ['memory', 137, false, ['memory'], 'SIGKILL', null],
    ],
    [
      'no memory, as the shell tells it',
      reported(exited(137), memory),
      ['memory', 137, false, ['memory'], 'SIGKILL', null],
    ],
    [
      'memory that ran out for a child',
      reported(exited(0), memory),
      ['exit', 0, true, ['memory'], null, null],
    ],
    ['137 without a reason', reported(exited(137)), ['exit', 137, false, [], null, null]],
    [
      'too many processes',
      reported(exited(254), { reached: ['processes'] }),
      ['processes', 254, false, ['processes'], null, null],
    ],
    ['a full disk', reported(exited(1), { diskShare: 0.995 }), ['disk', 1, false, ['disk'], null, null]],
    [
      'a full disk that nobody minds',
      reported(exited(0), { diskShare: 1 }),
      ['exit', 0, true, [], null, null],
    ],
    [
      'a disk that is nearly full',
      reported(exited(1), { diskShare: 0.98 }),
      ['exit', 1, false, [], null, null],
    ],
  ])('[RS-02] [RS-13] %s', (_name, actual, expected) => expect(actual).toEqual(expected));

  test('[RS-13] says in words which limit was in the way', () => {
    const usage = { ...USAGE, reached: ['processes'] as const, diskShare: 1 };
    expect(toEndReport(exited(1), usage, CONTEXT).end.message).toBe(
      'ended with exit code 1; the session had as many processes as it may have; the disk of the session is full',
    );
    const { message } = toEndReport({ kind: 'limit', limit: 'memoryBytes' }, USAGE, CONTEXT).end;
    expect(message).toBe('killed: out of memory, limit 256 MB');
  });
});
