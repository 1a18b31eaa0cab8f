import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../src/core/limits.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { DockerDriver } from '../../src/drivers/docker/driver.ts';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { finish } from '../contract/cells.ts';
import { BASE_IMAGE, ensureBaseImage } from '../support/base-image.ts';
import { engineApi, engineHost, whyNoEngine } from '../support/docker-engine.ts';
import { describeThatNeeds } from '../support/needs.ts';
import { NpmRegistry } from '../support/npm-registry.ts';
import { PackageSite, prepare } from '../support/package-site.ts';

const image = { name: BASE_IMAGE, recipe: undefined };

const makeDriver = (stateDirectory: string): DockerDriver =>
  new DockerDriver({
    endpoint: findEndpoint({ host: engineHost() }),
    runtime: undefined,
    stateDirectory,
    guest: fileURLToPath(new URL('../../guest', import.meta.url)),
    recipes: fileURLToPath(new URL('../../images', import.meta.url)),
    languages: {},
    weaker: [],
    log: SILENT_LOG,
    onProgress: () => {},
  });

describeThatNeeds(whyNoEngine())('packages in cells of an engine', () => {
  let registry: NpmRegistry;
  let site: PackageSite;
  beforeAll(async () => {
    await ensureBaseImage(engineApi().socket);
    registry = await NpmRegistry.start();
    site = new PackageSite(registry.preset, { loopback: true, driver: makeDriver });
    registry.publish({
      name: 'good',
      members: [{ path: 'package/index.js', content: 'exports.value = 7' }],
      manifest: { scripts: { postinstall: 'touch ran' } },
    });
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
    await registry[Symbol.asyncDispose]();
  });

  test('[MC-10, MC-11] are installed, kept and run as elsewhere', async () => {
    const store = await site.open({ image });
    const first = await prepare(store, 'good');
    expect(first.packages).toEqual([
      { name: 'good', version: '1.0.0', from: registry.authority, direct: true },
    ]);
    const folder = join(store.folder, first.modules, 'good');
    expect(readdirSync(folder).toSorted()).toEqual(['index.js', 'package.json']);
    expect(await prepare(store, 'good')).toEqual({ ...first, fromStore: true });
    const cell = await site.driver.create({
      name: 'packages-docker-test',
      kind: 'session',
      limits: DEFAULT_LIMITS,
      image,
      folders: [{ name: 'packages', folder: store.folder, at: '/packages' }],
    });
    try {
      const code = `console.log(require('good').value); require('fs').appendFileSync(require.resolve('good'), 'evil')`;
      const env = { NODE_PATH: `{packages}/${first.modules}` };
      const exec = await cell.exec({ argv: ['bun', '--no-install', '-e', code], env });
      exec.closeStdin();
      const { stdout, stderr, outcome } = await finish(exec);
      expect(stdout).toBe('7\n');
      expect(stderr).toMatch(/EROFS|EACCES/);
      expect(outcome).toEqual({ kind: 'exited', code: 1 });
    } finally {
      await cell.dispose();
    }
    expect(readFileSync(join(folder, 'index.js'), 'utf8')).toBe('exports.value = 7');
  });

  test('[MC-10] what is not there is named', async () => {
    await expect(prepare(await site.open({ image }), 'missing')).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: 'missing cannot be installed: the registry has no such package',
    });
    expect(site.driver.list()).toEqual([]);
  });
});
