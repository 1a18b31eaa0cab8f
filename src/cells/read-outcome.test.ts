import { describe, expect, test } from 'vitest';
import type { ExecOutcome } from '../core/exec.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { describeReading, readOutcome } from './read-outcome.ts';

const MEMORY = { reached: ['memoryBytes'] } as const;

describe('an outcome', () => {
  test.each<[ExecOutcome, string, number, string | undefined]>([
    [{ kind: 'exited', code: 0 }, 'exit', 0, undefined],
    [{ kind: 'exited', code: 255 }, 'exit', 255, undefined],
    [{ kind: 'exited', code: 124 }, 'exit', 124, undefined],
    [{ kind: 'signalled', signal: 9 }, 'signal', 137, 'SIGKILL'],
    [{ kind: 'signalled', signal: 11 }, 'signal', 139, 'SIGSEGV'],
    [{ kind: 'signalled', signal: 50 }, 'signal', 178, 'signal 50'],
    [{ kind: 'limit', limit: 'wallTimeMs' }, 'timeout', 124, 'SIGKILL'],
    [{ kind: 'limit', limit: 'memoryBytes' }, 'memory', 137, 'SIGKILL'],
    [{ kind: 'limit', limit: 'outputBytes' }, 'output', 137, 'SIGKILL'],
    [{ kind: 'cancelled' }, 'cancelled', 130, 'SIGKILL'],
  ])('[CX-04, CX-05, RS-02, MC-06] %j is %s, %i, %s', (outcome, reason, exitCode, signal) => {
    expect(readOutcome(outcome)).toEqual({ reason, exitCode, signal, ok: exitCode === 0 });
  });

  test.each<[ExecOutcome, string]>([
    [{ kind: 'exited', code: 137 }, 'memory'],
    [{ kind: 'signalled', signal: 9 }, 'memory'],
    [{ kind: 'exited', code: 0 }, 'exit'],
    [{ kind: 'exited', code: 1 }, 'exit'],
    [{ kind: 'signalled', signal: 15 }, 'signal'],
    [{ kind: 'limit', limit: 'wallTimeMs' }, 'timeout'],
    [{ kind: 'cancelled' }, 'cancelled'],
  ])('[RS-13] where memory ran out, %j is %s', (outcome, reason) => {
    expect(readOutcome(outcome, MEMORY).reason).toBe(reason);
    expect(readOutcome(outcome, { reached: ['processes'] })).toEqual(readOutcome(outcome));
  });

  test.each<[ExecOutcome, string]>([
    [{ kind: 'exited', code: 3 }, 'ended with exit code 3'],
    [{ kind: 'signalled', signal: 15 }, 'ended by SIGTERM'],
    [{ kind: 'limit', limit: 'wallTimeMs' }, 'timed out after 10 seconds'],
    [{ kind: 'limit', limit: 'memoryBytes' }, 'killed: out of memory, limit 256 MB'],
    [{ kind: 'limit', limit: 'outputBytes' }, 'killed: more than 16384 KB of output'],
    [{ kind: 'cancelled' }, 'cancelled'],
  ])('[CX-05] %j in words: %s', (outcome, words) => {
    expect(describeReading(readOutcome(outcome), DEFAULT_LIMITS)).toBe(words);
  });

  test('[CX-05] one second is one', () => {
    const reading = readOutcome({ kind: 'limit', limit: 'wallTimeMs' });
    const bounds = { ...DEFAULT_LIMITS, wallTimeMs: 1000 };
    expect(describeReading(reading, bounds)).toBe('timed out after 1 second');
  });
});
