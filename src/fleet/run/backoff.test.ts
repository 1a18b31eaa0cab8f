import { expect, test } from 'vitest';
import { backoffMs } from './backoff.ts';

const base = { baseSeconds: 30, maxSeconds: 300 };

test.each([
  ['exponential', [30, 60, 120, 240, 300, 300]],
  ['linear', [30, 60, 90, 120, 150, 180]],
  ['fixed', [30, 30, 30, 30, 30, 30]],
] as const)('[FL-12] %s', (strategy, seconds) => {
  const waits = seconds.map((_, index) => backoffMs({ ...base, strategy }, index + 1, 0.5) / 1000);
  expect(waits).toEqual(seconds);
});

test('[FL-12] a tenth more or less, so that workers do not come back together', () => {
  const wait = (random: number): number => backoffMs({ ...base, strategy: 'fixed' }, 1, random);
  expect([wait(0), wait(1)]).toEqual([27_000, 33_000]);
});
