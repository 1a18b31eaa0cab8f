import { afterAll, expect } from 'vitest';
import type { Driver } from '../../src/core/driver.ts';
import { APPLE as APPLE_KIND } from '../../src/drivers/apple/kind.ts';
import { AppleDouble, IMAGE, whyNoDouble } from '../support/apple-double/apple-double.ts';
import { makeAppleDriver } from '../support/apple-driver.ts';
import { testThatNeeds } from '../support/needs.ts';
import { MiB, bash, finish, python, runMain, specOf } from './cells.ts';
import { driverContract } from './driver-contract.ts';
import { APPLE_EXEMPTIONS } from './exemptions.ts';

const double = new AppleDouble();
afterAll(() => double[Symbol.asyncDispose]());
const test = testThatNeeds(whyNoDouble());

/** With the one image that has everything, whatever the spec says. */
function makeDriver(): Driver {
  const driver = makeAppleDriver(double);
  return {
    name: 'apple',
    traits: APPLE_KIND.traits,
    probe: () => driver.probe(),
    create: (spec) => driver.create({ ...spec, image: { name: IMAGE, recipe: undefined } }),
    list: () => driver.list(),
    imageName: (image) => driver.imageName(image),
    problem: () => driver.problem(),
    orphans: () => driver.orphans(),
    reclaim: () => driver.reclaim(),
    close: () => driver.close(),
  };
}

driverContract({
  title: '[MC-13, MC-03, SC-03] apple, through a double of its command',
  test,
  exempt: APPLE_EXEMPTIONS,
  makeDriver,
});

test('[MC-13, SC-03] a cell writes nowhere in its root, also not where the image lets everybody', async () => {
  const driver = makeDriver();
  const script =
    'for f in /var/tmp/x /dev/shm/x /tmp/x; do (echo hi > $f) 2>/dev/null && echo wrote $f; done';
  const { stdout } = await runMain(driver, bash(script));
  await driver.close();
  expect(stdout).toBe('wrote /dev/shm/x\nwrote /tmp/x\n');
});

test('[MC-06] two CPUs and half a gigabyte are asked for and had', async () => {
  const driver = makeDriver();
  const cell = await driver.create(specOf(undefined, { cpus: 2, memoryBytes: 512 * MiB }));
  const [record] = double.containers();
  expect(record?.configuration.resources).toMatchObject({ cpus: 2, memoryInBytes: 512 * MiB });
  const hog = `x = bytearray(${400 * MiB}); print("fits")`;
  expect((await finish(await cell.exec(python(hog)))).stdout).toBe('fits\n');
  const greedy = `x = bytearray(${600 * MiB}); print("fits")`;
  expect((await finish(await cell.exec(python(greedy)))).outcome).toEqual({
    kind: 'limit',
    limit: 'memoryBytes',
  });
  // The cell itself has survived it.
  expect((await finish(await cell.exec(bash('echo alive')))).stdout).toBe('alive\n');
  await driver.close();
});

test('[FL-09, SC-04] workers are refused', async () => {
  const driver = makeDriver();
  const folders = [{ name: 'work', folder: '/tmp', at: '/workspace', writable: true }] as const;
  for (const spec of [
    { ...specOf(undefined), kind: 'worker' },
    { ...specOf(undefined), folders },
    { ...specOf(undefined), owner: { uid: 1000, gid: 1000 } },
  ] as const)
    await expect(driver.create(spec)).rejects.toMatchObject({ code: 'POLICY_UNENFORCEABLE' });
  await driver.close();
});

test('[SC-02, MC-13] nothing of any cell is left, and nobody was asked to remove what others have', () => {
  expect(double.ids()).toEqual([]);
  const calls = double.calls();
  expect(calls.filter((words) => words.includes('--all') && words[0] !== 'list')).toEqual([]);
  expect(calls.length).toBeGreaterThan(50);
});
