import { describe, test } from 'vitest';
import { OciDriver, type OciOptions } from '../../src/drivers/oci/driver.ts';

/**
 * `test`, or a skipped one that says why. On CI every runtime must be there, so a skip is a failure.
 */
export function testThatNeeds(missing: string | undefined): typeof test | typeof test.skip {
  if (missing === undefined) return test;
  announceSkip(missing);
  return test.skip;
}

/** The same for a whole group. */
export function describeThatNeeds(missing: string | undefined): typeof describe | typeof describe.skip {
  if (missing === undefined) return describe;
  announceSkip(missing);
  return describe.skip;
}

function announceSkip(missing: string): void {
  if (process.env['CI'] !== undefined && process.env['CI'] !== '')
    throw new Error(`cannot be skipped on CI: ${missing}`);
  process.stderr.write(`SKIPPED: ${missing}\n`);
}

export const isRoot = process.geteuid?.() === 0;

/** Why the oci driver cannot run with these options here, or undefined. */
export async function whyNotOci(options: OciOptions): Promise<string | undefined> {
  const probe = await new OciDriver(options).probe();
  return probe.ok ? undefined : `${probe.problem} (${probe.remedy})`;
}
