import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CellFiles } from '../../src/cells/cell-files.ts';
import type { Cell } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import { DEFAULT_LIMITS } from '../../src/core/limits.ts';
import { readPresets } from '../../src/egress/presets.ts';
import type { PreparedPackages } from '../../src/packages/api.ts';
import type { PackageStore, PackageStoreOptions } from '../../src/packages/package-store.ts';
import { finish, type Finished } from '../contract/cells.ts';
import { describeThatNeeds, whyNotOci } from '../support/needs.ts';
import { PackageSite, ociOptions, prepare, specsOf } from '../support/package-site.ts';

const missing = await whyNotOci(ociOptions('/dev/shm/hotcell-packages-probe'));
const { npm } = await readPresets({ env: process.env });
const MiB = 1024 * 1024;

/** With these, anything but a look at the disk fails. */
const OFFLINE: Partial<PackageStoreOptions> = {
  driver: {
    create: () => Promise.reject(new Error('a cell is made')),
    traits: { confines: 'cells' },
  } as unknown as Driver,
  openNetwork: () => Promise.reject(new Error('the network is opened')),
};

describeThatNeeds(missing)('packages of the registry of this machine', () => {
  let site: PackageSite;
  let store: PackageStore;
  beforeAll(async () => {
    site = new PackageSite(npm);
    store = await site.open();
  });
  afterAll(() => site[Symbol.asyncDispose]());

  async function withCell<T>(use: (cell: Cell) => Promise<T>): Promise<T> {
    const cell = await site.driver.create({
      name: 'packages-test',
      kind: 'session',
      limits: { ...DEFAULT_LIMITS, memoryBytes: 512 * MiB },
      folders: [{ name: 'packages', folder: store.folder, at: '/packages' }],
    });
    try {
      return await use(cell);
    } finally {
      await cell.dispose();
    }
  }

  /** Runs code with the packages, as a workbench does. */
  async function run(code: string, { modules }: PreparedPackages): Promise<Finished> {
    return withCell(async (cell) => {
      await new CellFiles(cell).write([{ path: 'main.ts', content: Buffer.from(code) }]);
      const exec = await cell.exec({
        argv: ['bun', '--no-install', '{workdir}/main.ts'],
        env: { NODE_PATH: `{packages}/${modules}`, BUN_INSTALL_CACHE_DIR: '{packages}' },
      });
      exec.closeStdin();
      return finish(exec);
    });
  }

  test('[MC-10, MC-11] are installed in a cell once; the second time needs neither cell nor network', async () => {
    const texts: string[] = [];
    const signal = new AbortController().signal;
    const first = await store.prepare(specsOf('zod', 'is-odd'), {
      signal,
      onProgress: (text) => void texts.push(text),
    });
    expect(first).toMatchObject({ fromStore: false, modules: `store/${first.key}/node_modules` });
    expect(texts[0]).toContain('is-odd, zod');
    expect(site.made.at(-1)).toMatchObject({ name: 'packages' });
    expect(site.made.at(-1)).not.toHaveProperty('folders');
    const byName = first.packages
      .toSorted((one, other) => (one.name < other.name ? -1 : 1))
      .map(({ name, direct, from }) => [name, direct, npm.hosts.includes(from)]);
    expect(byName).toEqual([
      ['is-number', false, true],
      ['is-odd', true, true],
      ['zod', true, true],
    ]);
    const again = await site.open(OFFLINE);
    expect(await prepare(again, 'is-odd', 'zod')).toEqual({ ...first, fromStore: true });
    await expect(prepare(again, 'is-even')).rejects.toThrow('a cell is made');
  });

  test('[MC-07, MC-10] the version that is named is the one that runs, read-only and offline', async () => {
    const prepared = await prepare(store, 'zod@3.22.4');
    expect(prepared.packages).toEqual([expect.objectContaining({ name: 'zod', version: '3.22.4' })]);
    const code = `import { z } from 'zod'; import { version } from 'zod/package.json';
const { z: again } = require('zod'); console.log(version, z === again, z.string().parse('x'))`;
    expect(await run(code, prepared)).toMatchObject({
      stdout: '3.22.4 true x\n',
      outcome: { kind: 'exited', code: 0 },
    });
  });

  test('[MC-11] code cannot change what others will import', async () => {
    const prepared = await prepare(store, 'zod@3.22.4');
    const before = snapshot(store.folder);
    const attempts = [
      'echo evil > "$P/zod/lib/index.js"',
      'echo evil >> "$P/zod/package.json"',
      'touch "$P/evil"',
      'mkdir -p "$P/../../evil"',
      'rm -rf "$P"',
      'rm -f "$P/../packages.json" "$P/../bun.lock"',
      'mv "$P/zod" "$P/zod2"',
      'chmod -R 777 /packages',
      'ln -s /tmp "$P/../../evil"',
      'ln "$P/zod/package.json" /tmp/hard && echo evil > /tmp/hard',
      'mount -o remount,rw /packages',
      'umount /packages',
      'echo evil > "/proc/1/root/$P/zod/package.json"',
    ];
    await withCell(async (cell) => {
      for (const attempt of attempts) {
        const env = { P: `{packages}/${prepared.modules}` };
        const exec = await cell.exec({ argv: ['bash', '-c', attempt], env });
        exec.closeStdin();
        const { outcome } = await finish(exec);
        expect([attempt, outcome]).not.toEqual([attempt, { kind: 'exited', code: 0 }]);
      }
      const seen = await cell.exec({ argv: ['ls', '-A', '/packages'], env: {} });
      expect((await finish(seen)).stdout).toBe('resolved\nstaging\nstore\n');
    });
    expect(snapshot(store.folder)).toEqual(before);
  });

  test('[MC-11] nobody sees what others asked for', async () => {
    await prepare(store, 'zod@3.22.4');
    await withCell(async (cell) => {
      const exec = await cell.exec({ argv: ['ls', '/packages/resolved', '/packages/staging'], env: {} });
      const { outcome, stderr } = await finish(exec);
      expect(outcome).toEqual({ kind: 'exited', code: 2 });
      expect(stderr.match(/Permission denied/g)).toHaveLength(2);
    });
  });

  test.each([
    [
      'hotcell-no-such-package-1',
      /^hotcell-no-such-package-1 cannot be installed: the registry has no such package$/,
    ],
    ['zod@999.0.0', /^zod cannot be installed: there is no version 999\.0\.0$/],
    ['zod@no-such-tag', /^zod cannot be installed: there is no version no-such-tag$/],
  ])('[MC-10] %s is named, and stops everything', async (text, message) => {
    const before = readdirSync(join(store.folder, 'store'));
    await expect(prepare(store, 'is-odd', text)).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: expect.stringMatching(message) as string,
    });
    expect(readdirSync(join(store.folder, 'store'))).toEqual(before);
    expect(readdirSync(join(store.folder, 'staging'))).toEqual([]);
  });

  test('[MC-10] versions that are too new are not taken', async () => {
    const careful = await site.open({ minimumReleaseAgeSeconds: 20 * 365 * 86_400 });
    await expect(prepare(careful, 'zod@3.22.4')).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: 'zod cannot be installed: no version that fits is older than 7300 days',
    });
  });

  test('[MC-11] a set that lost a part of it is installed again', async () => {
    const first = await prepare(store, 'ms@2.1.3');
    rmSync(join(store.folder, first.modules), { recursive: true });
    const second = await prepare(store, 'ms@2.1.3');
    expect(second).toEqual(first);
    expect(readFileSync(join(store.folder, second.modules, 'ms/package.json'), 'utf8')).toContain('2.1.3');
  });

  test('[MC-11] no cell is left', () => {
    expect(site.driver.list()).toEqual([]);
  });
});

/** Paths, modes and contents. */
function snapshot(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return entry.isFile() ? `${path} ${readFileSync(path, 'latin1')}` : path;
    })
    .toSorted();
}
