import { describe, expect, test } from 'vitest';
import type { ExecOutcome, KillCause, Usage } from '../../core/exec.ts';
import { parseStatus, toOutcome } from './outcome.ts';

const CALM: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
const STARVED: Usage = { ...CALM, reached: ['memoryBytes'] };

describe('what the init wrote', () => {
  test.each([
    ['up\nexit 0\n', { code: 0, signalled: false }],
    ['up\nexit 0', { code: 0, signalled: false }],
    ['exit 7\n', { code: 7, signalled: false }],
    ['up\nexit 137\n', { code: 137, signalled: false }],
    ['up\nKilled\nexit 137\n', { code: 137, signalled: true }],
    ['up\nSegmentation fault (core dumped)\nexit 139\n', { code: 139, signalled: true }],
    ['up\nexit 130\n', { code: 130, signalled: true }],
    ['up\nexit 141\n', { code: 141, signalled: true }],
    ['up\nsh: 1: lua: not found\nexit 127\n', { code: 127, signalled: false }],
  ])('[CX-04] %j is read', (status, expected) => {
    expect(parseStatus(status)).toEqual(expected);
  });

  test.each([
    ['nothing', ''],
    ['only that it is there', 'up\n'],
    ['an exit in the middle', 'up\nexit 0\nnoise'],
    ['an exit in the middle and a line break', 'up\nexit 0\n\n'],
    ['no byte', 'up\nexit 999\n'],
    ['one more than a byte', 'up\nexit 256\n'],
    ['four digits', 'up\nexit 0000\n'],
    ['a negative number', 'up\nexit -1\n'],
    ['a number that is none', 'up\nexit 0x0\n'],
    ['no number', 'up\nexit \n'],
    ['a carriage return', 'up\r\nexit 0\r\n'],
    ['two spaces', 'up\nexit  0\n'],
    ['within a line', 'up\nno exit 0\n'],
    ['other digits', 'up\nexit ٣\n'],
    ['huge noise', `up\n${'x'.repeat(1_000_000)}`],
  ])('[CX-04] %s is no end', (_what, status) => {
    expect(parseStatus(status)).toBeUndefined();
  });

  test.each([
    ['a forged success before the truth', 'up\nexit 0\nexit 3\n', 3],
    ['many of them', `${'exit 0\n'.repeat(10_000)}exit 3\n`, 3],
    ['without the beginning, which was cut', '\nexit 0\nexit 3\n', 3],
    ['NUL bytes', 'up\n\0\0\nexit 3\n', 3],
  ])('[CX-04] %s: the last line counts', (_what, status, code) => {
    expect(parseStatus(status)?.code).toBe(code);
  });
});

describe('the outcome', () => {
  test.each<[string, string, KillCause | undefined, Usage, ExecOutcome | undefined]>([
    ['ended by itself', 'up\nexit 3\n', undefined, CALM, { kind: 'exited', code: 3 }],
    ['ended by a signal', 'up\nTerminated\nexit 143\n', undefined, CALM, { kind: 'signalled', signal: 15 }],
    ['exit code like a signal', 'up\nexit 143\n', undefined, CALM, { kind: 'exited', code: 143 }],
    ['out of memory', 'up\nKilled\nexit 137\n', undefined, STARVED, { kind: 'limit', limit: 'memoryBytes' }],
    ['all out of memory', 'up\n', undefined, STARVED, { kind: 'limit', limit: 'memoryBytes' }],
    ['a child out of memory', 'up\nexit 1\n', undefined, STARVED, { kind: 'exited', code: 1 }],
    ['killed itself', 'up\nKilled\nexit 137\n', undefined, CALM, { kind: 'signalled', signal: 9 }],
    ['too much time', 'up\n', 'wallTimeMs', CALM, { kind: 'limit', limit: 'wallTimeMs' }],
    ['too much output', 'up\n', 'outputBytes', CALM, { kind: 'limit', limit: 'outputBytes' }],
    ['time before memory', 'up\n', 'wallTimeMs', STARVED, { kind: 'limit', limit: 'wallTimeMs' }],
    ['cancelled', 'up\n', 'cancelled', CALM, { kind: 'cancelled' }],
    ['lost', 'up\n', undefined, CALM, undefined],
    ['never started', '', undefined, CALM, undefined],
  ])('[CX-04, CX-05, CX-16] %s', (_what, status, cause, usage, outcome) => {
    expect(toOutcome(status, cause, usage)).toEqual(outcome);
  });

  // DEFECT: `echo "exit 0" >/run/hotcell/status; while :; do :; done` is killed in time and reported as a success.
  test.fails('[CX-05] a forged success does not hide that the program had to be killed', () => {
    expect(toOutcome('up\nexit 0\n', 'wallTimeMs', CALM)).toEqual({ kind: 'limit', limit: 'wallTimeMs' });
  });
});
