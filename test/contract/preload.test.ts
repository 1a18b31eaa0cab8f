import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import { unenforced } from '../../src/core/enforcement.ts';
import { DEFAULT_LIMITS } from '../../src/core/limits.ts';
import { PreloadDriver, type PreloadOptions } from '../../src/drivers/preload/driver.ts';
import { findTraces } from '../support/leftovers.ts';
import { tmpdirOnTmpfs } from '../support/server.ts';
import { driverContract } from './driver-contract.ts';
import { PRELOAD_EXEMPTIONS } from './exemptions.ts';

const stateDirectory = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-contract-'));
const options: PreloadOptions = {
  stateDirectory,
  guest: fileURLToPath(new URL('../../guest', import.meta.url)),
  tools: bundledTools(),
  // The contract asks for half a core.
  weaker: ['cpus', 'identity'],
};

driverContract({
  title: '[MC-02, SC-04] preload',
  test,
  exempt: PRELOAD_EXEMPTIONS,
  makeDriver: () => new PreloadDriver(options),
});

test('[SC-04] preload refuses a share of a core, which nobody keeps', async () => {
  const driver = new PreloadDriver({ ...options, weaker: ['identity'] });
  const spec = { name: 'x', kind: 'run', limits: DEFAULT_LIMITS } as const;
  await expect(driver.create(spec)).rejects.toMatchObject({ code: 'POLICY_UNENFORCEABLE' });
  expect(driver.list()).toEqual([]);
  await driver.close();
});

test('[FL-09, SC-04] preload refuses workers', async () => {
  const driver = new PreloadDriver(options);
  const spec = { name: 'x', kind: 'worker', limits: DEFAULT_LIMITS } as const;
  await expect(driver.create(spec)).rejects.toMatchObject({ code: 'POLICY_UNENFORCEABLE' });
  expect(driver.list()).toEqual([]);
  await driver.close();
});

test('[MC-02, SC-04] preload says what keeps each promise, and names the kernel', async () => {
  const probe = await new PreloadDriver(options).probe();
  if (!probe.ok) throw new Error(probe.problem);
  expect(unenforced(probe.enforcement).filter((promise) => promise !== 'identity')).toEqual([]);
  expect(probe.runtime).toMatch(/Landlock \d+ and seccomp/);
  expect(probe.facts).toContainEqual({ name: 'Landlock', value: expect.stringMatching(/^version \d+$/) });
});

afterAll(() => {
  rmSync(stateDirectory, { recursive: true, force: true });
  rmSync(`${stateDirectory}-preload`, { recursive: true, force: true });
});

test('[SC-02] nothing of any cell is left on the host', () => {
  expect(findTraces(`${stateDirectory}-preload`)).toEqual({
    processes: [],
    cgroups: [],
    mounts: [],
    folders: [],
  });
});
