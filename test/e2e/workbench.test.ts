import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KeptWorkbenches } from '../../src/workbench/workbenches.ts';
import type { CodeRequest, CodeResult, Workbench } from '../../src/workbench/api.ts';
import { listProcesses } from '../support/leftovers.ts';
import { describeEach, FRESH_WAYS } from '../support/served-by.ts';
import { waitUntilNothingIsLeft } from '../support/workbench-cells.ts';
import {
  makeSiteWords,
  openFromWords,
  removeSiteFolders,
  request,
  type SiteWords,
} from '../support/workbench-site.ts';

const ME = { tenant: 'me' };

const run = (bench: Workbench, code: string, more: Partial<CodeRequest> = {}): Promise<CodeResult> =>
  bench.run(request(code, more)).result;

describeEach(FRESH_WAYS, (way) => {
  let words: SiteWords;
  let opened: KeptWorkbenches;
  let bench: Workbench;

  beforeAll(async () => {
    await way.prepare();
    words = makeSiteWords(way.driver);
    opened = await openFromWords(words);
    bench = opened.open(ME);
  });
  afterAll(async () => {
    await opened.close();
    await waitUntilNothingIsLeft(words);
    removeSiteFolders(words);
  });

  test('[MC-03, MC-06, MC-07] code runs in a cell, where and with what it should', async () => {
    const code =
      'const { path } = import.meta; console.log(path, process.cwd(), process.env.BUN_INSTALL_CACHE_DIR)';
    const result = await run(bench, code);
    expect(result).toMatchObject({
      status: 'ok',
      exitCode: 0,
      stdout: '/code/main.ts /tmp/work /packages\n',
      stderr: '',
      message: undefined,
      isolation: { driver: way.driver, runtime: expect.stringMatching(way.runtime) },
      limits: { cpus: 2, memoryBytes: 512 * 1024 * 1024, wallTimeMs: 30_000 },
    });
  });

  test('[MC-09] times are those of the calendar', async () => {
    const { idleMs } = opened.facts();
    const before = Date.now();
    const started = bench.run(request(''));
    await started.result;
    for (const time of [started.startedAt, bench.expiresAt() - idleMs]) {
      expect(time).toBeGreaterThan(before - 1000);
      expect(time).toBeLessThan(Date.now() + 1000);
    }
  });

  test('[MC-06] at its time the code dies with all its children, and the cell goes on', async () => {
    const marker = `7${Date.now() % 1e8}`;
    const code = `Bun.spawn(["sleep", "${marker}"]); console.log("begun"); for (;;);`;
    const before = await run(bench, '');
    const result = await run(bench, code, { timeoutMs: 1500 });
    expect(result).toMatchObject({ status: 'timeout', stdout: 'begun\n', limits: { wallTimeMs: 1500 } });
    expect(result.message).toContain('1.5 s');
    expect(listProcesses().filter((line) => line.includes(marker))).toEqual([]);
    const after = await run(bench, 'console.log("on")');
    expect(after).toMatchObject({ stdout: 'on\n', cellId: before.cellId });
  });

  test('[MC-06] more memory than granted: the result says so, and the next call works', async () => {
    const code = 'const all = []; for (;;) all.push(Buffer.alloc(16 * 1024 * 1024, 1));';
    expect(await run(bench, code)).toMatchObject({ status: 'memory', exitCode: 137 });
    expect(await run(bench, 'console.log("on")')).toMatchObject({ status: 'ok', stdout: 'on\n' });
  });

  test('files come in and go out, and changes are told', async () => {
    await bench.files.write([{ path: 'data/in.txt', content: Buffer.from('seven') }]);
    const code = `
      const text = await Bun.file("data/in.txt").text();
      await Bun.write("out/result.txt", text.toUpperCase());`;
    const result = await run(bench, code, { files: [{ path: 'beside.txt', content: Buffer.from('b') }] });
    expect(result).toMatchObject({ status: 'ok', filesChanged: [{ path: 'out/result.txt', sizeBytes: 5 }] });
    expect(await bench.files.read('out/result.txt')).toMatchObject({ content: 'SEVEN' });
    expect(await bench.files.read('beside.txt')).toMatchObject({ content: 'b' });
    const linked = await run(bench, 'require("fs").symlinkSync("/etc/passwd", "link")');
    expect(linked).toMatchObject({ status: 'ok', cellId: result.cellId, filesChanged: [{ path: 'link' }] });
    await expect(bench.files.read('link')).rejects.toMatchObject({ code: 'FILE_REFUSED' });
    await expect(bench.files.read('../../etc/passwd')).rejects.toMatchObject({ code: 'FILE_REFUSED' });
  });

  test('[MC-07, MC-11] neither the code nor the packages can be changed from inside', async () => {
    writeFileSync(join(words.dataDir, 'packages/seen.txt'), 'from outside');
    const code = `
      const fs = require("fs");
      console.log(fs.readFileSync("/packages/seen.txt", "utf8"));
      for (const work of [
        () => fs.writeFileSync("/code/main.ts", "1"),
        () => fs.writeFileSync("/code/other.ts", "1"),
        () => fs.unlinkSync("/code/main.ts"),
        () => fs.renameSync("/code/main.ts", "/code/gone.ts"),
        () => fs.chmodSync("/code/main.ts", 0o777),
        () => fs.writeFileSync("/packages/seen.txt", "1"),
        () => fs.mkdirSync("/packages/mine"),
        () => fs.symlinkSync("/tmp", "/packages/link"),
      ]) {
        try { work(); console.log("done"); } catch (error) { console.log(error.code); }
      }`;
    const { stdout } = await run(bench, code);
    const [seen, ...refusals] = stdout.trim().split('\n');
    expect(seen).toBe('from outside');
    expect(refusals).toHaveLength(8);
    expect(refusals.filter((word) => !/^(EROFS|EACCES|EPERM)$/.test(word))).toEqual([]);
  });

  test('[MC-04] without a permission there is no network', async () => {
    const code = `
      const net = require("net");
      const tries = ["1.1.1.1", "127.0.0.1"].map((host) => new Promise((resolve) => {
        net.connect({ host, port: 80 }).on("error", ({ code }) => resolve(code)).on("connect", () => resolve("open"));
      }));
      console.log((await Promise.all(tries)).join(" "));
      console.log(Object.keys(require("os").networkInterfaces()).filter((name) => name !== "lo").length);`;
    const { stdout } = await run(bench, code);
    expect(stdout).toMatch(/^E[A-Z]+ ECONNREFUSED\n0\n$/);
  });

  test('output is kept at both ends, and a flood ends the code', async () => {
    const long = await run(
      bench,
      'console.log("first"); for (let i = 0; i < 50_000; i++) console.log(i); console.log("last")',
    );
    expect(long.stdout).toMatch(/^first\n[\s\S]*\[… \d+ bytes cut …\][\s\S]*last\n$/);
    expect(long.stdout.length + long.stdoutCut).toBeGreaterThan(long.stdoutBytes);
    const flood = await run(
      bench,
      'const line = "x".repeat(1 << 16); for (;;) require("fs").writeSync(1, line);',
    );
    expect(flood).toMatchObject({ status: 'error', message: expect.stringContaining('output') });
    expect(flood.stdout.length).toBeLessThan(100_000);
  });

  test('[MC-15] saved snippets are imported by name, also by each other', async () => {
    const { snippets } = opened;
    const base = '/** @description one */ export const one = (): number => 1;';
    const sum =
      '// @description sum\nimport { one } from "snippets/one";\nexport function plus(n: number) { return n + one(); }';
    await snippets.save(ME, { name: 'one', code: base });
    await snippets.save(ME, { name: 'plus', code: sum });
    expect(await run(bench, 'import { plus } from "snippets/plus"; console.log(plus(4))')).toMatchObject({
      stdout: '5\n',
    });
    expect(await run(bench, '// @use-snippet: plus\nconsole.log(plus(5))')).toMatchObject({ stdout: '6\n' });
    expect(
      await run(bench, 'const { one } = await import("snippets/" + "one"); console.log(one())', {
        snippets: ['one'],
      }),
    ).toMatchObject({ stdout: '1\n' });
    expect(await run(bench, '', { snippets: ['none'] })).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('none'),
    });
  });

  test('another language of the table runs as well', async () => {
    const typescript = await run(bench, '');
    const python = await run(
      bench,
      'import os\nopen("p.txt", "w").write("py")\nprint(os.getcwd(), __file__)',
      { language: 'python' },
    );
    expect(python).toMatchObject({ status: 'ok', stdout: '/tmp/work /code/main.py\n' });
    expect(python.filesChanged).toEqual([{ path: 'p.txt', sizeBytes: 2 }]);
    expect(await bench.files.read('p.txt')).toMatchObject({ content: 'py' });
    // Where cells are made from images, one for each.
    expect(python.cellId === typescript.cellId).toBe(way.driver === 'oci');
    expect((await run(bench, '')).cellId).toBe(typescript.cellId);
  });

  test('[MC-11] a set of packages is linked and read, and one that cannot be had stops the run', async () => {
    const set = join(words.dataDir, 'packages/sets/k/node_modules');
    mkdirSync(join(set, 'seven'), { recursive: true });
    writeFileSync(join(set, 'seven/package.json'), '{"name": "seven", "version": "7.0.0", "main": "i.js"}');
    writeFileSync(join(set, 'seven/i.js'), 'exports.seven = 7;');
    const packages = [{ name: 'seven', version: '7.0.0', from: 'registry.example', direct: true }];
    const site = makeSiteWords(way.driver);
    const own = await openFromWords(site, {
      imports: {
        scan: (code) =>
          Promise.resolve({
            ok: true,
            code,
            eager: [],
            warnings: [],
            packages: [...code.matchAll(/from "(\w+)"/g)].map(([, name = '']) => ({
              name,
              range: undefined,
            })),
          }),
        merge: (_names, found) => found,
      },
      openPackages: () =>
        Promise.resolve({
          folder: join(words.dataDir, 'packages'),
          prepare: ([spec]) =>
            spec?.name === 'seven'
              ? Promise.resolve({ key: 'k', modules: 'sets/k/node_modules', packages, fromStore: false })
              : Promise.reject(new Error(`${spec?.name} cannot be had`)),
        }),
    });
    try {
      const user = own.open(ME);
      expect(await run(user, 'import { seven } from "seven"; console.log(seven)')).toMatchObject({
        status: 'ok',
        stdout: '7\n',
        packages,
        installed: packages,
      });
      expect(await run(user, 'console.log("ran"); import x from "eight"')).toMatchObject({
        status: 'failed',
        stdout: '',
        message: expect.stringContaining('eight'),
      });
      const late = await run(
        user,
        'console.log(await import("sev" + "en").then(() => "there", () => "gone"))',
      );
      expect(late.stdout).toBe('gone\n');
    } finally {
      await own.close();
      removeSiteFolders(site);
    }
  });
});
