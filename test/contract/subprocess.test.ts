import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { PROMISES } from '../../src/core/enforcement.ts';
import { SubprocessDriver } from '../../src/drivers/subprocess/driver.ts';
import { driverContract } from './driver-contract.ts';
import { SUBPROCESS_EXEMPTIONS } from './exemptions.ts';

const stateDirectory = mkdtempSync(join(tmpdir(), 'hotcell-contract-'));
const options = {
  stateDirectory,
  guest: fileURLToPath(new URL('../../guest', import.meta.url)),
  tools: [],
};

driverContract({
  title: 'subprocess',
  test,
  exempt: SUBPROCESS_EXEMPTIONS,
  makeDriver: () => new SubprocessDriver({ ...options, weaker: PROMISES }),
});

test('[SC-04] subprocess refuses to run unless every missing promise is given up by name', async () => {
  const driver = new SubprocessDriver({ ...options, weaker: ['network'] });
  const creating = driver.create({
    name: 'x',
    kind: 'run',
    limits: (await import('../../src/core/limits.ts')).DEFAULT_LIMITS,
  });
  await expect(creating).rejects.toMatchObject({ code: 'POLICY_UNENFORCEABLE' });
});

afterAll(() => {
  rmSync(stateDirectory, { recursive: true, force: true });
  rmSync(`${stateDirectory}-subprocess`, { recursive: true, force: true });
});
