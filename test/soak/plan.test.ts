import { describe, expect, test } from 'vitest';
import { actKinds, faultKinds, firstRounds, isStormy } from './plan.ts';

const DRIVERS = ['oci', 'docker'] as const;

describe.each(DRIVERS)('the plan of a soak on %s', (driver) => {
  test('the same seed gives the same plan, and a longer one begins as a shorter one', () => {
    const short = firstRounds(7, driver, 20);
    expect(firstRounds(7, driver, 20)).toEqual(short);
    expect(firstRounds(7, driver, 50).slice(0, 20)).toEqual(short);
  });

  test('another seed gives another plan', () => {
    expect(firstRounds(8, driver, 3)).not.toEqual(firstRounds(7, driver, 3));
  });

  test('every act and every fault comes within 40 rounds, whatever the seed', () => {
    for (let seed = 0; seed < 50; seed++) {
      const rounds = firstRounds(seed, driver, 40);
      const acts = new Set(rounds.flatMap(({ acts: all }) => all.map(({ kind }) => kind)));
      const faults = new Set(rounds.flatMap(({ faults: all }) => all.map(({ kind }) => kind)));
      expect(actKinds().filter((kind) => !acts.has(kind))).toEqual([]);
      expect(faultKinds(driver).filter((kind) => !faults.has(kind))).toEqual([]);
    }
  });

  test('a fault has its moment in its round, and the numbers of acts are those of the whole plan', () => {
    const rounds = firstRounds(3, driver, 30);
    for (const { acts, faults } of rounds)
      for (const { after } of faults) expect(after).toBeLessThan(acts.length);
    const numbers = rounds.flatMap(({ acts }) => acts.map(({ number }) => number));
    expect(numbers).toEqual(numbers.map((_, index) => index));
  });

  test('no server ends in calm rounds, and these become more', () => {
    const ends = new Set(['kill-server', 'stop-server']);
    const rounds = firstRounds(5, driver, 200);
    for (const { number, faults } of rounds)
      expect(faults.some(({ kind }) => ends.has(kind))).toBe(isStormy(number));
    const stormy = rounds.filter(({ number }) => isStormy(number)).map(({ number }) => number);
    expect(stormy.slice(0, 12)).toEqual([0, 1, 2, 3, 12, 13, 14, 15, 32, 33, 34, 35]);
  });
});
