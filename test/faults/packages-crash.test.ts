import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PreparedPackages } from '../../src/packages/api.ts';
import { waitFor } from '../support/leftovers.ts';
import { describeThatNeeds, whyNotOci } from '../support/needs.ts';
import { NpmRegistry } from '../support/npm-registry.ts';
import { PackageSite, ociOptions, prepare } from '../support/package-site.ts';

const missing = await whyNotOci(ociOptions('/dev/shm/hotcell-packages-probe'));
/** How many files of the package are there when the server is killed. */
const MOMENTS = [1, 100, 299, 300, 301].map((files, index) => ({ files, version: `1.0.${index}` }));
const CHILD = fileURLToPath(new URL('../support/package-child.ts', import.meta.url));

describeThatNeeds(missing)('servers that share a store of packages', () => {
  let registry: NpmRegistry;
  let site: PackageSite;
  beforeAll(async () => {
    registry = await NpmRegistry.start();
    site = new PackageSite(registry.preset, { loopback: true });
    const members = Array.from({ length: 300 }, (_, index) => ({
      path: `package/file-${index}.js`,
      content: `exports.a = ${index};\n`.repeat(200),
    }));
    for (const name of ['one', 'four']) registry.publish({ name, members });
    for (const { version } of MOMENTS) registry.publish({ name: 'two', version, members });
  });
  afterAll(async () => {
    await site.driver.reclaim();
    await site[Symbol.asyncDispose]();
    await registry[Symbol.asyncDispose]();
  });

  const list = (name: string): string[] => readdirSync(join(site.folder, 'packages', name));

  /** Files of the package in a set that is not finished. */
  function countStaged(): number {
    try {
      const [staging = ''] = list('staging').filter((name) => !name.startsWith('.'));
      return readdirSync(join(site.folder, 'packages/staging', staging, 'set/node_modules/two')).length;
    } catch {
      return 0;
    }
  }

  function start(...texts: string[]): ChildProcess {
    const { hosts, variables = {} } = registry.preset;
    const settings = [site.folder, hosts[0] ?? '', variables['npm_config_registry'] ?? ''];
    return spawn(process.execPath, [CHILD, ...settings, ...texts], { stdio: ['ignore', 'pipe', 'inherit'] });
  }

  async function preparedBy(child: ChildProcess): Promise<PreparedPackages> {
    if (child.stdout === null) throw new Error('no output');
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) lines.push(line);
    return JSON.parse(lines.at(-1) ?? '') as PreparedPackages;
  }

  test('[MC-11] a server that is killed while it fetches leaves nothing that the next one does not remove', async () => {
    registry.hangs.add('/one/-/1.0.0.tgz');
    const child = start('one');
    await waitFor('the tarball is asked for', () => registry.requests.includes('/one/-/1.0.0.tgz'));
    expect(list('staging')).toHaveLength(1);
    // A living server is left alone.
    await site.open();
    expect(list('staging')).toHaveLength(1);
    child.kill('SIGKILL');
    await once(child, 'exit');
    registry.hangs.clear();
    const store = await site.open();
    expect(list('staging')).toEqual([]);
    expect(list('store')).toEqual([]);
    expect(await prepare(store, 'one')).toMatchObject({ fromStore: false });
    expect(await prepare(store, 'one')).toMatchObject({ fromStore: true });
  });

  test('[MC-11] a server that is killed while it stores leaves no half of a set', async () => {
    const killed: boolean[] = [];
    for (const { files, version } of MOMENTS) {
      const child = start(`two@${version}`);
      const exited = once(child, 'exit');
      while (countStaged() < files && child.exitCode === null) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      child.kill('SIGKILL');
      await exited;
      killed.push(child.signalCode === 'SIGKILL');
      const store = await site.open();
      expect(list('staging')).toEqual([]);
      const prepared = await prepare(store, `two@${version}`);
      expect(prepared.packages).toEqual([expect.objectContaining({ name: 'two', version })]);
      expect(readdirSync(join(store.folder, prepared.modules, 'two'))).toHaveLength(301);
    }
    // The last one may have been faster than we.
    expect(killed.slice(0, 3)).toEqual([true, true, true]);
  });

  test('[MC-11] two servers install the same at once, and have the same', async () => {
    const children = [start('four'), start('four'), start('four')];
    const settled = await Promise.allSettled(children.map(preparedBy));
    const prepared = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    expect(prepared).toHaveLength(3);
    expect(new Set(prepared.map(({ key }) => key)).size).toBe(1);
    expect(prepared[0]?.packages).toEqual([
      { name: 'four', version: '1.0.0', from: registry.authority, direct: true },
    ]);
    expect(list('staging')).toEqual([]);
    const store = await site.open();
    expect(await prepare(store, 'four')).toMatchObject({ key: prepared[0]?.key, fromStore: true });
  });
});
