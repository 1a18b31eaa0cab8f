import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HandClock } from '../../src/core/hand-clock.double.ts';
import { BUILT_IN_LANGUAGES } from '../../src/core/language.ts';
import { DEFAULT_LIMITS } from '../../src/core/limits.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import type { PackageStore } from '../../src/packages/package-store.ts';
import { PYPI } from '../../src/packages/pip-ecosystem.ts';
import { PythonPackages } from '../../src/packages/python-packages.ts';
import { PythonScanner } from '../../src/packages/python-scanner.ts';
import type { ImportScan } from '../../src/packages/scan-messages.ts';
import { HotPool } from '../../src/pool/hot-pool.ts';
import type { RunRequest } from '../../src/runs/run.ts';
import { OneShotRuns } from '../../src/runs/runs.ts';
import { finish, type Finished } from '../contract/cells.ts';
import { describeThatNeeds, whyNotOci } from '../support/needs.ts';
import { PackageSite, ociOptions } from '../support/package-site.ts';
import { PythonIndex } from '../support/python-index.ts';

const missing = await whyNotOci(ociOptions('/dev/shm/hotcell-packages-probe'));
const never = new AbortController().signal;

describeThatNeeds(missing)('packages of Python', () => {
  let index: PythonIndex;
  let site: PackageSite;
  let store: PackageStore;
  let scanner: PythonScanner;
  beforeAll(async () => {
    index = await PythonIndex.start();
    site = new PackageSite(index.preset, { loopback: true });
    store = await site.open({ ecosystem: PYPI, folder: join(site.folder, 'python') });
    scanner = new PythonScanner({
      driver: site.driver,
      limits: { ...DEFAULT_LIMITS, wallTimeMs: 20_000 },
      log: SILENT_LOG,
    });
    index.wheel({ name: 'inner', files: { 'inner.py': 'value = 7\n' } });
    index.wheel({ name: 'outer', files: { 'outer.py': 'import inner\n' }, requires: ['inner>=1'] });
    index.wheel({
      name: 'outer',
      version: '2.0.0',
      files: { 'outer.py': 'import inner\nnew = 1\n' },
      requires: ['inner'],
    });
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
    await index[Symbol.asyncDispose]();
  });

  const prepare = (name: string, range?: string) =>
    store.prepare([{ name, range }], { signal: never, onProgress: () => {} });

  async function run(code: string, modules: string): Promise<Finished> {
    const cell = await site.driver.create({
      name: 'python-packages-test',
      kind: 'session',
      limits: DEFAULT_LIMITS,
      folders: [{ name: 'packages', folder: store.folder, at: '/packages' }],
    });
    try {
      const env = { PYTHONPATH: `{packages}/${modules}`, PYTHONDONTWRITEBYTECODE: '1' };
      const exec = await cell.exec({ argv: ['python3', '-c', code], env });
      exec.closeStdin();
      return await finish(exec);
    } finally {
      await cell.dispose();
    }
  }

  test('[MC-11] are installed in a cell once, and only read afterwards', async () => {
    const first = await prepare('outer', '1.0.0');
    expect(first).toMatchObject({ fromStore: false, modules: `store/${first.key}/modules` });
    expect(first.packages).toEqual([
      { name: 'outer', version: '1.0.0', from: index.authority, direct: true },
      { name: 'inner', version: '1.0.0', from: index.authority, direct: false },
    ]);
    const cells = site.made.length;
    expect(await prepare('Outer', '1.0.0')).toEqual({ ...first, fromStore: true });
    expect(site.made).toHaveLength(cells);
    const code = `import outer; print(outer.inner.value, hasattr(outer, 'new'))
try: open(outer.__file__, 'a')
except OSError as error: print(error.strerror)`;
    expect((await run(code, first.modules)).stdout).toMatch(
      /^7 False\n(?:Read-only file system|Permission denied)\n$/,
    );
    expect((await prepare('outer')).packages[0]).toMatchObject({ version: '2.0.0' });
  });

  test.each([
    ['nowhere', undefined, 'nowhere cannot be installed: the index has no such package'],
    ['outer', '9', 'outer cannot be installed: there is no version ==9'],
    ['outer', '>=1; evil', 'is no version'],
    ['../outer', undefined, 'is no name of a package'],
    ['-e.', undefined, 'is no name of a package'],
    ['outer[x]', undefined, 'is no name of a package'],
  ])('[MC-10] %s %s is named', async (name, range, message) => {
    await expect(prepare(name, range)).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: expect.stringContaining(message) as string,
    });
  });

  test('[MC-11] nothing that has to be built is taken, since that would run it', async () => {
    index.source('built', 'raise SystemExit("it ran")\n');
    await expect(prepare('built')).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: expect.stringMatching(/^built cannot be installed: .* built for this platform/) as string,
    });
  });

  test.each([
    ['climbs', { '../../../../evil.py': 'evil' }],
    ['stands at the top', { '/tmp/evil.py': 'evil' }],
    ['runs at the start', { 'sitecustomize.py': 'evil' }],
    ['runs at the start as a package', { 'usercustomize/__init__.py': 'evil' }],
    ['pretends to be another', { 'outer-1.0.0.dist-info/METADATA': 'Name: outer\n' }],
  ])('[MC-11] a package with a file that %s is refused', async (what, files) => {
    const name = `evil${what.replaceAll(/[^a-z]/g, '')}`;
    index.wheel({ name, files });
    await expect(prepare(name)).rejects.toMatchObject({
      code: 'PACKAGE_UNAVAILABLE',
      message: expect.stringContaining(name) as string,
    });
    expect(readdirSync(site.folder)).toEqual(['python']);
    expect(readdirSync(join(store.folder, 'staging'))).toEqual([]);
  });

  test('[MC-10] what cannot be enforced is refused', async () => {
    const careful = await site.open({
      ecosystem: PYPI,
      folder: join(site.folder, 'python'),
      minimumReleaseAgeSeconds: 60,
    });
    await expect(
      careful.prepare([{ name: 'outer', range: undefined }], { signal: never, onProgress: () => {} }),
    ).rejects.toMatchObject({ code: 'POLICY_UNENFORCEABLE' });
  });

  describe('[MC-10, MC-11] runs of code', () => {
    let pool: HotPool;
    let runs: OneShotRuns;
    beforeAll(() => {
      const { python: entry } = BUILT_IN_LANGUAGES;
      if (entry === undefined) throw new Error('there is no Python');
      const languages = { python: entry };
      const common = { languages, limits: DEFAULT_LIMITS, log: SILENT_LOG };
      const { driver } = site;
      const sizes = { size: 0, booting: 2, memoryBytes: 0, idleMs: 1, idleCheckMs: 1 };
      pool = new HotPool({ ...common, ...sizes, driver, strategy: 'fresh', clock: new HandClock() });
      const python = new PythonPackages({ scanner, store, confines: driver.traits.confines });
      runs = new OneShotRuns({
        ...common,
        pool,
        packages: python,
        ceilings: { wallTimeMs: 60_000, memoryBytes: DEFAULT_LIMITS.memoryBytes },
        keptBytes: 4096,
        running: 2,
        queue: 2,
        stopping: never,
        imageName: () => 'host:python3',
        onRun: () => {},
      });
    });
    afterAll(() => pool.close());

    const execute = (code: string, files: RunRequest['files'] = []) =>
      runs.run(
        { language: 'python', code, args: [], env: {}, files, stdin: new Uint8Array() },
        { signal: never },
      );

    test('have what they import, and say what that was', async () => {
      const result = await execute('import outer, sys\nprint(outer.inner.value, sys.argv[0] == __file__)');
      expect(result).toMatchObject({ exitCode: 0, stdout: { text: '7 True\n' } });
      expect(result.packages?.map(({ name, direct }) => [name, direct])).toEqual([
        ['outer', true],
        ['inner', false],
      ]);
    });

    test('do not begin without a package that is not there', async () => {
      await expect(execute('print(1)\nimport nowhere')).rejects.toMatchObject({
        code: 'PACKAGE_UNAVAILABLE',
        message: expect.stringContaining('nowhere') as string,
      });
    });

    test('need none for files beside the code, and hear of mistakes from Python itself', async () => {
      const files = [{ path: 'nowhere.py', content: Buffer.from('value = 3\n') }];
      const beside = await execute('import nowhere\nprint(nowhere.value)', files);
      expect(beside).toMatchObject({ stdout: { text: '3\n' }, packages: undefined });
      const wrong = await execute('import nowhere\nprint(');
      expect(wrong.exitCode).toBe(1);
      expect(wrong.stderr.text).toContain('SyntaxError');
    });
  });

  describe('[MC-10] imports', () => {
    const scan = (code: string, own: string[] = []): Promise<ImportScan> =>
      scanner.scan(code, { own, signal: never });

    test.each([
      ['import yaml, os.path, cv2 as c', ['PyYAML', 'opencv-python-headless']],
      ['from sklearn.svm import SVC; from bs4 import *', ['beautifulsoup4', 'scikit-learn']],
      ['def f():\n  import numpy.linalg', ['numpy']],
      ['import importlib\nimportlib.import_module("requests.x"); __import__("six")', ['requests', 'six']],
      ['from . import a; from .b import c; from __future__ import annotations', []],
      ['s = "import numpy"  # import numpy', []],
      ['try:\n  import ujson as json\nexcept ImportError:\n  import json', []],
      ['from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import numpy\nelse:\n  import six', ['six']],
      ['import sibling, numpy', ['numpy']],
    ])('%j', async (code, names) => {
      const result = await scan(code, ['sibling']);
      expect(result.ok ? result.packages.map(({ name }) => name).toSorted() : result).toEqual(names);
    });

    test('that nobody can tell are said, and mistakes have a place', async () => {
      expect(await scan('1\n__import__(name)')).toMatchObject({
        ok: true,
        warnings: [expect.stringMatching(/^line 2:/)],
      });
      expect(await scan('a = 1\nb = = 2')).toMatchObject({
        ok: false,
        problem: { kind: 'syntax', line: 2, column: 5, frame: '2 | b = = 2\n        ^' },
      });
    });

    test('of code that Python itself dies of', async () => {
      for (const code of [
        '('.repeat(100_000),
        `x = ${'-'.repeat(500_000)}1`,
        `${'['.repeat(150)}${']'.repeat(150)}\0`,
      ])
        expect(await scan(code)).toMatchObject({ ok: false, problem: { kind: 'syntax' } });
    });

    test('of the same code are read once', async () => {
      await scan('import numpy');
      const cells = site.made.length;
      await scan('import numpy');
      expect(site.made).toHaveLength(cells);
      expect(site.driver.list()).toEqual([]);
    });
  });
});
