import { expect, test } from 'vitest';
import { describeGrowth, growthOf } from './memory.ts';

const MiB = 1024 * 1024;
const life = (megabytes: readonly number[], descriptors: (index: number) => number = () => 50) =>
  megabytes.map((size, index) => ({ residentBytes: size * MiB, descriptors: descriptors(index) }));

test('a short life tells nothing', () => {
  expect(growthOf(life([100, 200, 300, 400, 500]))).toBeUndefined();
});

test('up and down is flat, and so is what the first rounds make for good', () => {
  const growth = growthOf(life([60, 90, 120, 130, 110, 125, 135, 120, 128, 118, 131]));
  expect(growth).toMatchObject({ rounds: 11 });
  expect(growth && describeGrowth(growth)).toBeUndefined();
});

test('what grows with every round is told', () => {
  const growth = growthOf(life(Array.from({ length: 20 }, (_, index) => 100 + 8 * index)));
  expect(growth && describeGrowth(growth)).toMatch(/grew in 20 rounds of equal load from \d+ to \d+ MiB/);
});

test('a step that is taken once is none, early or late', () => {
  for (const steps of [5, 13]) {
    const growth = growthOf(
      life(Array.from({ length: 18 }, (_, index) => (index < steps ? 119 : 185) + (index % 3))),
    );
    expect(growth && describeGrowth(growth)).toBeUndefined();
  }
});

test('so are descriptors', () => {
  const growth = growthOf(
    life(
      Array.from({ length: 20 }, () => 100),
      (index) => 50 + 4 * index,
    ),
  );
  expect(growth && describeGrowth(growth)).toMatch(/to \d+ descriptors/);
});
