import { statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { SILENT_LOG } from '../../core/log.ts';
import { Config } from '../config/config.ts';
import { DRIVER_NAMES, kindOf } from '../../drivers/registry.ts';
import { bundledTools, makeDriver } from './make-drivers.ts';

const configOf = (settings: object): Config => Config.parse(settings);

const HOOKS = { log: SILENT_LOG, onProgress: () => {} };

describe('the drivers', () => {
  test.each(DRIVER_NAMES)('%s is made under its own name, and is what the registry says', async (name) => {
    const driver = await makeDriver(name, configOf({}), HOOKS);
    expect([driver.name, driver.traits]).toEqual([name, kindOf(name).traits]);
    expect(kindOf(name).openImages !== undefined).toBe(driver.traits.images);
  });

  test('the settings know the same drivers', () => {
    expect(Config.shape.driver.unwrap().options).toEqual(['auto', ...DRIVER_NAMES]);
  });
});

test('[SC-04] subprocess makes no cell unless every promise it cannot keep was given up', async () => {
  const driver = await makeDriver('subprocess', configOf({ weaker: ['cpus'] }), HOOKS);
  const spec = { name: 'x', kind: 'run', limits: configOf({}).limits } as const;
  await expect(driver.create(spec)).rejects.toMatchObject({ code: 'POLICY_UNENFORCEABLE' });
  expect(driver.list()).toEqual([]);
});

test.each(bundledTools())('[CX-02] the bundled $name is a program', ({ path }) => {
  expect(statSync(path).mode & 0o111).not.toBe(0);
});
