import { existsSync, lstatSync, readFileSync, readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { INSTALL_LIMITS, type PackageStore } from '../../src/packages/package-store.ts';
import { waitFor } from '../support/leftovers.ts';
import { describeThatNeeds, whyNotOci } from '../support/needs.ts';
import { NpmRegistry } from '../support/npm-registry.ts';
import { PackageSite, ociOptions, prepare, specsOf } from '../support/package-site.ts';

const missing = await whyNotOci(ociOptions('/dev/shm/hotcell-packages-probe'));
const MiB = 1024 * 1024;

describeThatNeeds(missing)('packages that mean harm', () => {
  let registry: NpmRegistry;
  let site: PackageSite;
  let store: PackageStore;
  beforeAll(async () => {
    registry = await NpmRegistry.start();
    site = new PackageSite(registry.preset, { loopback: true });
    store = await site.open();
    registry.publish({ name: 'good', members: [{ path: 'package/index.js', content: 'exports.a = 1' }] });
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
    await registry[Symbol.asyncDispose]();
  });

  const install = (...texts: string[]) => prepare(store, ...texts);

  /** Everything in the folder of a set. */
  async function filesOf(...texts: string[]): Promise<string[]> {
    const { key } = await install(...texts);
    return readdirSync(join(store.folder, 'store', key), { recursive: true, encoding: 'utf8' }).toSorted();
  }

  const contentOf = async (path: string, ...texts: string[]): Promise<string> =>
    readFileSync(join(store.folder, (await install(...texts)).modules, path), 'utf8');

  test('[MC-11] the double of a registry serves', async () => {
    const prepared = await install('good');
    expect(prepared.packages).toEqual([
      { name: 'good', version: '1.0.0', from: registry.authority, direct: true },
    ]);
    expect(await contentOf('good/index.js', 'good')).toBe('exports.a = 1');
  });

  test('[MC-11] scripts of packages do not run, also those of packages that come along', async () => {
    const evil = 'touch ran; touch ../ran; touch "$INIT_CWD/node_modules/ran"; exit 0';
    const scripts = Object.fromEntries(
      ['preinstall', 'install', 'postinstall', 'prepare', 'preprepare', 'postprepare'].map((name) => [
        name,
        evil,
      ]),
    );
    // The last name is one that bun trusts unless it is told not to.
    for (const name of ['scripted', 'esbuild']) {
      registry.publish({ name, manifest: { scripts, hasInstallScript: true } });
    }
    registry.publish({
      name: 'brings-scripts',
      manifest: { dependencies: { scripted: '*', esbuild: '*' } },
      members: [{ path: 'package/binding.gyp', content: '{"targets":[{"target_name":"<!(touch ran)"}]}' }],
    });
    const files = await filesOf('brings-scripts', 'scripted');
    expect(files).toContain('node_modules/esbuild/package.json');
    expect(files.filter((path) => path.endsWith('ran'))).toEqual([]);
  });

  test('[MC-11] a tarball that climbs gets nowhere, and into no other package', async () => {
    registry.publish({
      name: 'climber',
      members: [
        { path: 'package/index.js', content: 'ok' },
        { path: 'package/../../good/index.js', content: 'evil' },
        { path: '../good/index.js', content: 'evil' },
        { path: 'package/../../../../evil', content: 'evil' },
        { path: '/tmp/evil', content: 'evil' },
        { path: 'package/../../.bin/good', content: 'evil', mode: 0o755 },
      ],
    });
    const outcome = await contentOf('good/index.js', 'climber', 'good').catch((error: unknown) => error);
    expect(outcome instanceof Error ? 'exports.a = 1' : outcome).toBe('exports.a = 1');
    expect(await contentOf('good/index.js', 'good')).toBe('exports.a = 1');
    for (const path of ['/tmp/evil', join(site.folder, 'evil'), join(store.folder, 'evil')]) {
      expect([path, existsSync(path)]).toEqual([path, false]);
    }
  });

  test('[MC-11] links of a tarball lead nowhere', async () => {
    registry.publish({
      name: 'linker',
      members: [
        { path: 'package/index.js', content: 'ok' },
        { path: 'package/passwd', type: '2', target: '/etc/passwd' },
        { path: 'package/up', type: '2', target: '../../../../..' },
        { path: 'package/up/evil', content: 'evil' },
        { path: 'package/hard', type: '1', target: '/etc/passwd' },
        { path: 'package/device', type: '3' },
      ],
    });
    const files = await filesOf('linker').catch(() => []);
    const folders = join(store.folder, 'store');
    const links = readdirSync(folders, { recursive: true, encoding: 'utf8' }).filter((path) =>
      lstatSync(join(folders, path)).isSymbolicLink(),
    );
    expect(links).toEqual([]);
    expect(files.filter((path) => /passwd|hard|device|^evil/.test(path))).toEqual([]);
  });

  test('[MC-11] rights in a tarball do not matter', async () => {
    registry.publish({
      name: 'rights',
      members: [
        { path: 'package/index.js', content: 'ok', mode: 0o6777 },
        { path: 'package/hidden.js', content: 'ok', mode: 0 },
        { path: 'package/folder/open.js', content: 'ok', mode: 0o666 },
      ],
    });
    const { key } = await install('rights');
    const folder = join(store.folder, 'store', key);
    const modes = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(
      (path) => lstatSync(join(folder, path)).mode & 0o7777,
    );
    expect(new Set(modes)).toEqual(new Set([0o644, 0o755]));
  });

  test('[MC-11] a package that says it is another one stays under its own name', async () => {
    const content = JSON.stringify({ name: 'good', version: '9.9.9', main: 'index.js' });
    registry.publish({ name: 'pretender', members: [{ path: 'package/package.json', content }] });
    const { packages } = await install('pretender');
    expect(packages.map(({ name, version }) => [name, version])).toEqual([['pretender', '1.0.0']]);
    expect((await filesOf('pretender')).filter((path) => path.includes('good'))).toEqual([]);
  });

  test('[MC-11] programs of packages are links within the set', async () => {
    registry.publish({
      name: 'with-bin',
      manifest: { bin: { tool: 'tool.js', '../../evil': 'tool.js', out: '../../../../etc/passwd' } },
      members: [{ path: 'package/tool.js', content: 'ok' }],
    });
    const { modules } = await install('with-bin');
    const programs = join(store.folder, modules, '.bin');
    const targets = readdirSync(programs).map((name) => realpathSync(join(programs, name)));
    expect(targets).not.toEqual([]);
    for (const target of targets) expect(target).toBe(join(store.folder, modules, 'with-bin/tool.js'));
    expect(existsSync(join(store.folder, 'evil'))).toBe(false);
  });

  test.each([
    ['an address', 'http://evil.example.org/x.tgz'],
    ['a repository', 'git+https://evil.example.org/x.git'],
    ['another repository', 'github:evil/x'],
    ['a folder', 'file:../../../../etc'],
    ['a link', 'link:/etc'],
    ['a workspace', 'workspace:*'],
  ])('[MC-11] a package that brings %s is refused by name', async (_what, from) => {
    const name = `brings-${from.replaceAll(/[^a-z]+/g, '-').slice(0, 20)}x`;
    registry.publish({ name, manifest: { dependencies: { inner: from } } });
    const failure = await install(name).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'PACKAGE_UNAVAILABLE' });
    expect((failure as Error).message).toMatch(new RegExp(`${name}|inner`));
  });

  test('[MC-11] a tarball on another host is refused by the gate, which is told', async () => {
    registry.publish({ name: 'elsewhere', tarball: 'http://evil.example.org/x.tgz' });
    await expect(install('elsewhere')).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: expect.stringMatching(
        /elsewhere cannot be installed: the gate refuses evil\.example\.org/,
      ) as string,
    });
  });

  test('[MC-11] a tarball with another checksum is not taken', async () => {
    registry.publish({ name: 'swapped', integrity: `sha512-${'A'.repeat(86)}==` });
    await expect(install('swapped')).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: expect.stringContaining('swapped') as string,
    });
  });

  test('[MC-11] a package that is larger than the cell is too large', async () => {
    registry.publish({
      name: 'huge',
      members: [{ path: 'package/zeros', content: Buffer.alloc(200 * MiB) }],
    });
    const small = await site.open({ limits: { ...INSTALL_LIMITS, diskBytes: 64 * MiB } });
    await expect(prepare(small, 'huge')).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: expect.stringMatching(/^huge cannot be installed: .* larger than the 67\.1 MB/) as string,
    });
    const tight = await site.open({ limits: { ...INSTALL_LIMITS, outputBytes: 64 * MiB } });
    await expect(prepare(tight, 'huge')).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: expect.stringMatching(/^huge cannot be installed: it is too large/) as string,
    });
  });

  test('[MC-11] more files than allowed are too many', async () => {
    const members = Array.from({ length: 200 }, (_, index) => ({ path: `package/f${index}` }));
    registry.publish({ name: 'many', members });
    const strict = await site.open({ mostItems: 100 });
    await expect(prepare(strict, 'many')).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: expect.stringMatching(/^many cannot be installed: it is too large/) as string,
    });
  });

  test('[MC-10] a registry that does not answer is not waited for without end', async () => {
    registry.publish({ name: 'slow' });
    registry.hangs.add('/slow');
    const hasty = await site.open({ limits: { ...INSTALL_LIMITS, wallTimeMs: 1500 } });
    await expect(prepare(hasty, 'slow')).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: 'slow cannot be installed: it takes longer than 1500 ms',
    });
  });

  test('[MC-10] whoever does not want it any more is let go, and nothing stays', async () => {
    registry.publish({ name: 'unwanted' });
    registry.hangs.add('/unwanted');
    const controllers = [new AbortController(), new AbortController()];
    const waiting = controllers.map(({ signal }) =>
      store.prepare(specsOf('unwanted'), { signal, onProgress: () => {} }).catch((error: unknown) => error),
    );
    await waitFor('the registry is asked', () => registry.requests.includes('/unwanted'));
    controllers[0]?.abort();
    expect(await waiting[0]).toMatchObject({ code: 'CANCELLED' });
    // The other one still waits for the same cell.
    expect(site.driver.list()).toHaveLength(1);
    controllers[1]?.abort();
    expect(await waiting[1]).toMatchObject({ code: 'CANCELLED' });
    await waitFor('its cell is gone', () => site.driver.list().length === 0);
    await waitFor('its folder is gone', () => readdirSync(join(store.folder, 'staging')).length === 0);
  });

  test('[MC-10] a registry that is not there is said to be', async () => {
    const gone = new PackageSite(
      { hosts: ['gone.example.org:1'], variables: { npm_config_registry: 'http://gone.example.org:1/' } },
      { loopback: true },
    );
    try {
      await expect(prepare(await gone.open(), 'good')).rejects.toMatchObject({
        code: 'PACKAGE_UNAVAILABLE',
        message: expect.stringMatching(/^good cannot be installed: the registry cannot be reached/) as string,
      });
    } finally {
      await gone[Symbol.asyncDispose]();
    }
  });

  test('[MC-11] what a registry says does not obey the terminal of anybody', async () => {
    registry.publish({ name: 'loud', manifest: { dependencies: { 'x\u001b[2J': '*' } } });
    const failure = await install('loud').catch((error: unknown) => error);
    expect(failure instanceof Error ? failure.message : '').not.toMatch(/\p{Cc}/u);
  });

  test('[MC-11] nothing is left of all that', () => {
    expect(site.driver.list()).toEqual([]);
    expect(readdirSync(join(store.folder, 'staging'))).toEqual([]);
  });
});
