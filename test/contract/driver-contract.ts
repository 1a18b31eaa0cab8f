import { describe, expect, type test } from 'vitest';
import type { Driver } from '../../src/core/driver.ts';
import { bash, specOf } from './cells.ts';
import { FILES } from './files.ts';
import { PROGRAMS } from './programs.ts';
import { HELD_TO, TRAITS } from './traits.ts';
import { WALLS } from './walls.ts';
import { WORKERS } from './workers.ts';

/** The promises of the Driver port. */
export const CONTRACT = { ...PROGRAMS, ...FILES, ...TRAITS, ...WALLS, ...WORKERS };
export type ContractName = keyof typeof CONTRACT;

/** What a driver is not held to, with the reason, which stands in the driver table of the docs. */
export type Exemptions = Readonly<Partial<Record<ContractName, string>>>;

/** Holds one driver to the contract. */
export function driverContract(subject: {
  readonly title: string;
  readonly test: typeof test | typeof test.skip;
  readonly exempt: Exemptions;
  /** Made once for the whole suite. */
  makeDriver(): Driver;
}): void {
  describe(subject.title, () => {
    const driver = subject.makeDriver();
    const held = Object.entries(CONTRACT).filter(
      ([name]) => !Object.hasOwn(subject.exempt, name) && (HELD_TO[name]?.(driver) ?? true),
    );
    for (const [name, check] of held) subject.test(name, () => check({ driver }));
    subject.test('[SC-02] close leaves no cell', async () => {
      await driver.create(specOf(bash('sleep 1000')));
      await driver.close();
      expect(driver.list()).toEqual([]);
    });
  });
}
