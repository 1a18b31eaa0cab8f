import { chmodSync, closeSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_LIMITS } from '../../src/core/limits.ts';
import { makeLog, makeOciDriver } from './rootless-driver.ts';

/**
 * Somebody who is not root cannot remove what is in a folder without the right to write, nor end a cell where nothing can be
 * started. What came of it goes to stdout.
 */
const stateDirectory = process.argv[2] ?? '';
const task = process.argv[3];

const { log, said } = makeLog();
const driver = makeOciDriver(stateDirectory, log);
const spec = { name: 'rootless-removal', kind: 'worker', limits: DEFAULT_LIMITS } as const;
const listInstances = (): string[] => readdirSync(stateDirectory).toSorted();
const told: string[] = [];

if (task === 'locked') {
  const cell = await driver.create(spec);
  const [instance = ''] = listInstances();
  chmodSync(join(stateDirectory, instance, 'cells', cell.id), 0o500);
  await cell.dispose();
  await cell.gone;
  told.push(cell.id, instance, ...driver.list().map(({ id }) => id));
} else if (task === 'exhausted') {
  const cell = await driver.create(spec);
  told.push(cell.id, ...listInstances());
  const descriptors: number[] = [];
  try {
    for (;;) descriptors.push(openSync('/dev/null', 'r'));
  } catch {
    // None is left.
  }
  await driver.close();
  for (const descriptor of descriptors) closeSync(descriptor);
} else {
  told.push(...(await driver.reclaim()));
}
await driver.close();
process.stdout.write(JSON.stringify({ told, said, left: listInstances() }));
