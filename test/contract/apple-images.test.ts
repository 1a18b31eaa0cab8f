import { afterAll, afterEach, expect } from 'vitest';
import type { AppleDriver } from '../../src/drivers/apple/driver.ts';
import { AppleDouble, whyNoDouble } from '../support/apple-double/apple-double.ts';
import { idleSpec, makeAppleDriver } from '../support/apple-driver.ts';
import { testThatNeeds } from '../support/needs.ts';
import { bash, finish } from './cells.ts';

const test = testThatNeeds(whyNoDouble());
const double = new AppleDouble();
const drivers: AppleDriver[] = [];
const makeDriver = (onProgress: (text: string) => void = () => {}): AppleDriver => {
  const driver = makeAppleDriver(double, { onProgress });
  drivers.push(driver);
  return driver;
};
afterEach(async () => {
  for (const driver of drivers.splice(0)) await driver.close();
});
afterAll(() => double[Symbol.asyncDispose]());

const BASE = { name: undefined, recipe: 'bun-runner-base' };
const builds = (): number => double.calls().filter(([word]) => word === 'build').length;

test('[MC-05, MC-12] a base image that is missing is built once, with progress, for all who want it', async () => {
  double.control({ registry: ['oven/bun:1-slim'] });
  const told: string[] = [];
  const driver = makeDriver((text) => told.push(text));
  const cells = await Promise.all([1, 2].map(() => driver.create(idleSpec({}, BASE))));
  expect(builds()).toBe(1);
  expect(told[0]).toBe('building bun-runner-base:latest');
  expect(told.join('\n')).toContain('COPY prepare.sh');
  expect(driver.imageName(BASE)).toBe('bun-runner-base:latest');
  const [cell] = cells;
  const exec = await cell?.exec({ argv: ['bun', '--eval', 'console.log(6 * 7)'], env: {} });
  expect(exec === undefined ? '' : (await finish(exec)).stdout).toBe('42\n');
});

test('[MC-05] one that is there is used as it is', async () => {
  const before = builds();
  const told: string[] = [];
  await makeDriver((text) => told.push(text)).create(idleSpec({}, BASE));
  expect([builds() - before, told]).toEqual([0, []]);
});

test('[MC-05] a build that fails says what failed and what to do, and is not tried again at once', async () => {
  double.state.removeImage('bun-runner-base');
  const stderr = 'Error: failed to solve: process "/bin/sh /tmp/prepare.sh bun" did not complete\n';
  double.fault({ command: 'build', exitCode: 1, stderr });
  const driver = makeDriver();
  const before = builds();
  for (const _ of [1, 2])
    await expect(driver.create(idleSpec({}, BASE))).rejects.toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      message: expect.stringContaining('prepare.sh bun') as string,
      hint: expect.stringContaining('hotcell build bun-runner-base --base IMAGE') as string,
    });
  expect(builds() - before).toBe(1);
});

test('[MC-13] another image is pulled with progress, or refused in the words of the registry', async () => {
  double.control({ registry: ['python:3.12-slim'] });
  const told: string[] = [];
  const driver = makeDriver((text) => told.push(text));
  const cell = await driver.create(idleSpec({}, { name: 'python:3.12-slim', recipe: 'python' }));
  expect((await finish(await cell.exec(bash('echo pulled')))).stdout).toBe('pulled\n');
  expect(told.join('\n')).toMatch(/pulling python:3.12-slim: .*50%/);
  await expect(driver.create(idleSpec({}, { name: 'nowhere:1', recipe: undefined }))).rejects.toMatchObject({
    code: 'IMAGE_UNAVAILABLE',
    message: expect.stringContaining('401 Unauthorized') as string,
  });
});

test.each(['--all', 'a b', 'x;y', ''])('[MC-13] %j is no image, and nobody is asked for it', async (name) => {
  const before = double.calls().filter(([word]) => word === 'image').length;
  await expect(makeDriver().create(idleSpec({}, { name, recipe: undefined }))).rejects.toMatchObject({
    code: 'IMAGE_UNAVAILABLE',
  });
  expect(double.calls().filter(([word]) => word === 'image')).toHaveLength(before);
});
