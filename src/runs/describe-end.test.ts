import { describe, expect, test } from 'vitest';
import type { ExecOutcome } from '../core/exec.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import { toEndMessage, toKeptOutput } from './describe-end.ts';

const KiB = 1024;
const SIGKILL = 9;

function keep(text: string, limit = 10 * KiB): CappedBytes {
  const bytes = new CappedBytes(limit);
  bytes.push(new TextEncoder().encode(text));
  return bytes;
}

describe('messages', () => {
  test.each<[string, ExecOutcome, string]>([
    ['CX-05', { kind: 'limit', limit: 'wallTimeMs' }, '[Execution timed out after 10 seconds]'],
    ['CX-09', { kind: 'limit', limit: 'memoryBytes' }, '[Execution killed: out of memory, limit 256 MB]'],
    ['CX-06', { kind: 'limit', limit: 'outputBytes' }, '[Execution killed: more than 16384 KB of output]'],
  ])('[CX-05, CX-06, CX-09] %s: %j', (_id, outcome, message) => {
    expect(toEndMessage(outcome, DEFAULT_LIMITS)).toBe(message);
  });

  test.each<ExecOutcome>([
    { kind: 'exited', code: 1 },
    { kind: 'signalled', signal: SIGKILL },
    { kind: 'cancelled' },
  ])('[CX-04] a program that ended by itself needs none: %j', (outcome) => {
    expect(toEndMessage(outcome, DEFAULT_LIMITS)).toBeUndefined();
  });

  test('[CX-05] parts of a second are shown', () => {
    const bounds = { ...DEFAULT_LIMITS, wallTimeMs: 1500 };
    expect(toEndMessage({ kind: 'limit', limit: 'wallTimeMs' }, bounds)).toContain('after 1.5 seconds');
  });
});

describe('kept output', () => {
  test('[CX-04] output that fits is kept as it is', () => {
    expect(toKeptOutput(keep('out\n'), 10 * KiB, undefined)).toEqual({
      text: 'out\n',
      totalBytes: 4,
      truncated: false,
    });
  });

  test.each([
    ['', '[why]'],
    ['out', 'out\n[why]'],
    ['out\n', 'out\n[why]'],
    ['out\n\n', 'out\n\n[why]'],
  ])('[CX-05] partial output %j and the message stand in lines of their own', (text, shown) => {
    expect(toKeptOutput(keep(text), 10 * KiB, '[why]').text).toBe(shown);
  });

  test('[CX-06] the mark of a cut is the last line', () => {
    const output = toKeptOutput(keep('a'.repeat(11 * KiB)), 10 * KiB, '[why]');
    expect(output.text).toBe(`${'a'.repeat(10 * KiB)}\n[why]\n[Output truncated at 10KB limit]`);
    expect(output).toMatchObject({ truncated: true, totalBytes: 11 * KiB });
  });

  test.each([
    [10 * KiB, false],
    [10 * KiB + 1, true],
  ])('[CX-06] %i bytes: cut is %s', (length, truncated) => {
    expect(toKeptOutput(keep('a'.repeat(length)), 10 * KiB, undefined).truncated).toBe(truncated);
  });

  test('[CX-06] a program that prints the mark itself is not marked as cut', () => {
    const output = toKeptOutput(keep('[Output truncated at 10KB limit]'), 10 * KiB, undefined);
    expect(output.truncated).toBe(false);
  });
});
