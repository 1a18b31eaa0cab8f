import { describe, expect, test } from 'vitest';
import type { ExecOutcome, KillCause, Usage } from '../../core/exec.ts';
import { StatusReader, toOutcome, type ProgramEnd } from './outcome.ts';

const CALM: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
const STARVED: Usage = { ...CALM, reached: ['memoryBytes'] };

/** What is read off a status that comes in pieces of at most `size` characters. */
function endOf(status: string, size = Number.POSITIVE_INFINITY): ProgramEnd | undefined {
  const reader = new StatusReader();
  for (let rest = status; rest !== ''; rest = rest.slice(size)) reader.push(rest.slice(0, size));
  return reader.end;
}

const ENDS: readonly [string, ProgramEnd][] = [
  ['up\nexit 0\n', { code: 0, signalled: false }],
  ['exit 7\n', { code: 7, signalled: false }],
  ['up\nexit 137\n', { code: 137, signalled: false }],
  ['up\nKilled\nexit 137\n', { code: 137, signalled: true }],
  ['up\nSegmentation fault (core dumped)\nexit 139\n', { code: 139, signalled: true }],
  ['up\nexit 130\n', { code: 130, signalled: true }],
  ['up\nexit 141\n', { code: 141, signalled: true }],
  ['up\nsh: 1: lua: not found\nexit 127\n', { code: 127, signalled: false }],
];

describe('what the init wrote', () => {
  test.each(ENDS)('[CX-04] %j is read', (status, end) => {
    expect(endOf(status)).toEqual(end);
  });

  test.each(ENDS)('[CX-04] %j is read when it comes byte by byte', (status, end) => {
    expect(endOf(status, 1)).toEqual(end);
  });

  test.each([
    ['nothing', ''],
    ['only that it is there', 'up\n'],
    ['a line that has not ended', 'up\nexit 0'],
    ['no byte', 'up\nexit 999\n'],
    ['one more than a byte', 'up\nexit 256\n'],
    ['four digits', 'up\nexit 0000\n'],
    ['a negative number', 'up\nexit -1\n'],
    ['a number that is none', 'up\nexit 0x0\n'],
    ['no number', 'up\nexit \n'],
    ['a carriage return', 'up\r\nexit 0\r\n'],
    ['two spaces', 'up\nexit  0\n'],
    ['other digits', 'up\nexit ٣\n'],
    ['huge noise', `up\n${'x'.repeat(1_000_000)}`],
  ])('[CX-04] %s is no end', (_what, status) => {
    expect(endOf(status)).toBeUndefined();
  });

  test.each([
    ['a forged success before the truth', 'up\nexit 0\nexit 3\n'],
    ['many of them', `${'exit 0\n'.repeat(1000)}exit 3\n`],
    ['a forged number after it', 'up\nexit 3\nexit 999\n'],
    ['noise before it, without a line break', 'up\nnoiseexit 3\n'],
    ['noise after it', 'up\nexit 3\nnoise'],
    ['huge noise before it', `up\n${'x'.repeat(100_000)}exit 3\n`],
    ['huge noise after it', `up\nexit 3\n${'x'.repeat(100_000)}`],
    ['NUL bytes', 'up\n\0\0\nexit 3\n'],
  ])('[CX-04] %s does not hide the end', (_what, status) => {
    for (const size of [7, 64, 65_536]) expect(endOf(status, size)?.code).toBe(3);
  });
});

const limit = (name: 'memoryBytes' | 'outputBytes' | 'wallTimeMs'): ExecOutcome => ({
  kind: 'limit',
  limit: name,
});

describe('the outcome', () => {
  interface Fate {
    readonly status: string;
    readonly cause?: KillCause;
    readonly usage?: Usage;
  }

  test.each<[string, Fate, ExecOutcome | undefined]>([
    ['ended by itself', { status: 'up\nexit 3\n' }, { kind: 'exited', code: 3 }],
    ['ended by a signal', { status: 'up\nTerminated\nexit 143\n' }, { kind: 'signalled', signal: 15 }],
    ['exit code like a signal', { status: 'up\nexit 143\n' }, { kind: 'exited', code: 143 }],
    ['out of memory', { status: 'up\nKilled\nexit 137\n', usage: STARVED }, limit('memoryBytes')],
    ['all out of memory', { status: 'up\n', usage: STARVED }, limit('memoryBytes')],
    ['a child out of memory', { status: 'up\nexit 1\n', usage: STARVED }, { kind: 'exited', code: 1 }],
    ['killed itself', { status: 'up\nKilled\nexit 137\n' }, { kind: 'signalled', signal: 9 }],
    ['too much time', { status: 'up\n', cause: 'wallTimeMs' }, limit('wallTimeMs')],
    ['too much output', { status: 'up\n', cause: 'outputBytes' }, limit('outputBytes')],
    ['time before memory', { status: 'up\n', cause: 'wallTimeMs', usage: STARVED }, limit('wallTimeMs')],
    ['a forged success', { status: 'up\nexit 0\n', cause: 'wallTimeMs' }, limit('wallTimeMs')],
    ['cancelled', { status: 'up\n', cause: 'cancelled' }, { kind: 'cancelled' }],
    ['lost', { status: 'up\n' }, undefined],
    ['never started', { status: '' }, undefined],
  ])('[CX-04, CX-05, CX-16] %s', (_what, { status, cause, usage = CALM }, outcome) => {
    expect(toOutcome(endOf(status), cause, usage)).toEqual(outcome);
  });
});
