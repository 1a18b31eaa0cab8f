import { expect, test } from 'vitest';
import { DEFAULT_LIMITS, LIMIT_NAMES, Limits } from './limits.ts';

const MiB = 1024 ** 2;

test('[CX-09] without a word of the operator: half a CPU, 256 MB, 64 processes, 10 seconds', () => {
  expect(DEFAULT_LIMITS).toMatchObject({
    cpus: 0.5,
    memoryBytes: 256 * MiB,
    processes: 64,
    wallTimeMs: 10_000,
  });
});

test('[CX-09] disk, open files and output are limited by default, too', () => {
  expect(DEFAULT_LIMITS).toMatchObject({
    diskBytes: 64 * MiB,
    openFiles: 1024,
    outputBytes: 16 * MiB,
  });
});

test('[CX-09] there is no limit without a default', () => {
  expect(Object.keys(DEFAULT_LIMITS).toSorted()).toEqual([...LIMIT_NAMES].toSorted());
});

test('/tmp is held in memory, so by default it fits into the limit of memory', () => {
  expect(DEFAULT_LIMITS.diskBytes).toBeLessThan(DEFAULT_LIMITS.memoryBytes);
});

test.each([
  ['no CPU', { cpus: 0 }],
  ['a negative share', { cpus: -1 }],
  ['no number', { cpus: Number.NaN }],
  ['endless CPU', { cpus: Number.POSITIVE_INFINITY }],
  ['less memory than an interpreter needs', { memoryBytes: 8 * MiB - 1 }],
  ['half a byte', { memoryBytes: 256 * MiB + 0.5 }],
  ['too few processes for a shell', { processes: 3 }],
  ['no time', { wallTimeMs: 0 }],
  ['a limit that does not exist', { memory: 256 * MiB }],
])('[CX-09] refused: %s', (_what, limits) => {
  expect(Limits.safeParse(limits).success).toBe(false);
});

test('[CX-09] a time that no timer of Node can keep is refused', () => {
  expect(Limits.safeParse({ wallTimeMs: 2 ** 31 }).success).toBe(false);
});
