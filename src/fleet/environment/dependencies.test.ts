import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { waitFor } from '../../../test/support/leftovers.ts';
import type { Log } from '../../core/log.ts';
import { copyTree } from './copy-tree.ts';
import { DependencyCache, type DependencyCacheOptions } from './dependencies.ts';
import type { SetupPlan } from './plan-setup.ts';

const PLAN: SetupPlan = {
  key: 'a'.repeat(64),
  command: 'npm ci',
  products: ['node_modules'],
  runsAlways: false,
};
let folder = '';
let cacheFolder = '';
let warnings: unknown[] = [];
const log: Log = { debug() {}, info() {}, warn: (fields) => void warnings.push(fields), error() {} };
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-dependencies-'));
  cacheFolder = join(folder, 'cache');
  warnings = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const openCache = (more: Partial<DependencyCacheOptions> = {}): Promise<DependencyCache> =>
  DependencyCache.open({ folder: cacheFolder, log, ...more });

function makeWorktree(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
}

/** A worktree in which something was installed. */
function install(name = 'first'): string {
  const worktree = makeWorktree(name);
  const modules = join(worktree, 'node_modules');
  mkdirSync(join(modules, 'a/bin'), { recursive: true });
  mkdirSync(join(modules, '.bin'));
  writeFileSync(join(modules, 'a/index.js'), 'a');
  writeFileSync(join(modules, 'a/bin/run'), '#!/bin/sh\n', { mode: 0o755 });
  symlinkSync('../a/bin/run', join(modules, '.bin/run'));
  symlinkSync('/etc/passwd', join(modules, 'outside'));
  utimesSync(join(modules, 'a/index.js'), 1000, 1000);
  return worktree;
}

describe('dependencies that were installed once', () => {
  test('[FL-01] are restored as they were, links as links', async () => {
    const cache = await openCache();
    expect(await cache.restore(PLAN, makeWorktree('empty'))).toBe(false);
    expect(await cache.keep(PLAN, install())).toBe(true);
    const second = makeWorktree('second');
    expect(await cache.restore(PLAN, second)).toBe(true);
    const modules = join(second, 'node_modules');
    expect(readdirSync(second)).toEqual(['node_modules']);
    expect(readFileSync(join(modules, 'a/index.js'), 'utf8')).toBe('a');
    expect(lstatSync(join(modules, 'a/index.js')).mtimeMs).toBe(1_000_000);
    expect(lstatSync(join(modules, 'a/bin/run')).mode & 0o777).toBe(0o755);
    expect(readlinkSync(join(modules, '.bin/run'))).toBe('../a/bin/run');
    expect(readlinkSync(join(modules, 'outside'))).toBe('/etc/passwd');
    expect(execFileSync(join(modules, '.bin/run'), { encoding: 'utf8' })).toBe('');
    expect(readdirSync(cacheFolder)).toEqual([PLAN.key]);
    expect(warnings).toEqual([]);
  });

  test('[FL-01] are copies: a change in one worktree is none in another', async () => {
    const cache = await openCache();
    const first = install();
    await cache.keep(PLAN, first);
    writeFileSync(join(first, 'node_modules/a/index.js'), 'changed');
    const [second, third] = [makeWorktree('second'), makeWorktree('third')];
    await cache.restore(PLAN, second);
    writeFileSync(join(second, 'node_modules/a/index.js'), 'changed');
    await cache.restore(PLAN, third);
    expect(readFileSync(join(third, 'node_modules/a/index.js'), 'utf8')).toBe('a');
  });

  test('[FL-01] are several folders, all or none of them', async () => {
    const cache = await openCache();
    const both: SetupPlan = { ...PLAN, products: ['node_modules', '.venv'] };
    const first = install();
    mkdirSync(join(first, '.venv/lib'), { recursive: true });
    expect(await cache.keep(both, first)).toBe(true);
    const second = makeWorktree('second');
    expect(await cache.restore(both, second)).toBe(true);
    expect(readdirSync(second).toSorted()).toEqual(['.venv', 'node_modules']);
    const third = makeWorktree('third');
    mkdirSync(join(third, '.venv/own'), { recursive: true });
    expect(await cache.restore(both, third)).toBe(false);
    expect(readdirSync(third)).toEqual(['.venv']);
    expect(readdirSync(join(third, '.venv'))).toEqual(['own']);
    expect(readdirSync(cacheFolder)).toEqual([PLAN.key]);
  });

  test('[FL-01] do not take the place of what is there, a link included', async () => {
    const cache = await openCache();
    await cache.keep(PLAN, install());
    const second = makeWorktree('second');
    const outside = makeWorktree('outside');
    symlinkSync(outside, join(second, 'node_modules'));
    expect(await cache.restore(PLAN, second)).toBe(false);
    expect([readdirSync(outside), warnings.length]).toEqual([[], 1]);
  });

  test('[FL-01] are kept once, also when several workers come at the same time', async () => {
    const caches = await Promise.all([openCache(), openCache(), openCache()]);
    const worktrees = ['one', 'two', 'three'].map(install);
    const kept = await Promise.all(caches.map((cache, index) => cache.keep(PLAN, worktrees[index] ?? '')));
    expect(kept).toEqual([true, true, true]);
    expect(readdirSync(cacheFolder)).toEqual([PLAN.key]);
    expect(warnings).toEqual([]);
    const targets = ['x', 'y', 'z'].map(makeWorktree);
    const restored = await Promise.all(targets.map((target) => caches[0]?.restore(PLAN, target)));
    expect(restored).toEqual([true, true, true]);
  });

  test('[FL-01] that were not made are not kept', async () => {
    const cache = await openCache();
    const first = makeWorktree('first');
    expect(await cache.keep(PLAN, first)).toBe(false);
    symlinkSync('/etc', join(first, 'node_modules'));
    expect(await cache.keep(PLAN, first)).toBe(false);
    expect(await cache.keep({ ...PLAN, key: '../x' }, install('other'))).toBe(false);
    expect(readdirSync(cacheFolder)).toEqual([]);
  });

  test('[FL-01] are not taken for whole when they are not, and are made again', async () => {
    const cache = await openCache();
    const first = install();
    // Half an entry, as after a kill in the middle of something else's move.
    mkdirSync(join(cacheFolder, PLAN.key, 'node_modules'), { recursive: true });
    expect(await cache.has(PLAN)).toBe(false);
    expect(await cache.restore(PLAN, makeWorktree('second'))).toBe(false);
    expect(await cache.keep(PLAN, first)).toBe(true);
    rmSync(join(cacheFolder, PLAN.key, 'node_modules'), { recursive: true });
    expect(await cache.has(PLAN)).toBe(false);
    expect(await cache.keep(PLAN, first)).toBe(true);
    expect(await cache.restore(PLAN, makeWorktree('third'))).toBe(true);
  });

  test('[FL-11] leave no half of themselves when the one who copies is killed', async () => {
    const first = install();
    for (let index = 0; index < 3000; index++)
      writeFileSync(join(first, 'node_modules/a', String(index)), 'x');
    const script = `
      import { DependencyCache } from '${join(import.meta.dirname, 'dependencies.ts')}';
      const log = { debug() {}, info() {}, warn() {}, error() {} };
      const cache = await DependencyCache.open({ folder: '${cacheFolder}', log });
      await cache.keep(${JSON.stringify(PLAN)}, '${first}');`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' });
    await waitFor(
      'a copy is under way',
      () => existsSync(cacheFolder) && readdirSync(cacheFolder).length > 0,
    );
    child.kill('SIGKILL');
    await once(child, 'close');
    expect(readdirSync(cacheFolder)[0]).toMatch(/^\.new-/);
    const living = `.new-${process.pid}-${'0'.repeat(16)}`;
    mkdirSync(join(cacheFolder, living));
    const cache = await openCache();
    expect(readdirSync(cacheFolder)).toEqual([living]);
    expect(await cache.keep(PLAN, first)).toBe(true);
    expect(await cache.restore(PLAN, makeWorktree('second'))).toBe(true);
    expect(readdirSync(join(folder, 'second/node_modules/a'))).toHaveLength(3002);
  });

  test.skipIf(process.geteuid?.() !== 0)(
    '[FL-09] belong to the cell in its worktree, and to nobody else before',
    async () => {
      const first = install();
      execFileSync('chown', ['-R', '-h', '12345:12345', first]);
      chmodSync(join(first, 'node_modules/a/bin/run'), 0o6755);
      const cache = await openCache({ owner: { uid: 23_456, gid: 23_457 } });
      await cache.keep(PLAN, first);
      const kept = join(cacheFolder, PLAN.key, 'node_modules/a/bin/run');
      expect(lstatSync(kept)).toMatchObject({ uid: 0, gid: 0 });
      // SECURITY: what was the cell's and ran as the cell would run as root.
      expect(lstatSync(kept).mode & 0o7777).toBe(0o755);
      expect(lstatSync(cacheFolder).mode & 0o777).toBe(0o700);
      const second = makeWorktree('second');
      await cache.restore(PLAN, second);
      for (const path of ['', 'a', 'a/index.js', '.bin/run', 'outside']) {
        expect(lstatSync(join(second, 'node_modules', path))).toMatchObject({ uid: 23_456, gid: 23_457 });
      }
      expect(lstatSync('/etc/passwd').uid).toBe(0);
    },
  );
});

/** Of all plain files below, without following a link. */
function contentsOf(path: string): string {
  const info = lstatSync(path, { throwIfNoEntry: false });
  if (info?.isFile() === true) return readFileSync(path, 'utf8');
  if (info?.isDirectory() !== true) return '';
  return readdirSync(path)
    .map((name) => contentsOf(join(path, name)))
    .join('\n');
}

describe('a folder that hostile programs have made', () => {
  const BOUNDS = { mostBytes: 1_000_000, mostEntries: 1000 };

  test('[FL-09] is copied without pipes and sockets, on which one could wait forever', async () => {
    const from = makeWorktree('from');
    execFileSync('mkfifo', [join(from, 'pipe')]);
    const server = createServer().listen(join(from, 'socket'));
    await once(server, 'listening');
    writeFileSync(join(from, 'file'), 'x');
    await copyTree({ from, to: join(folder, 'to'), ...BOUNDS });
    server.close();
    expect(readdirSync(join(folder, 'to'))).toEqual(['file']);
  });

  test.each<[string, (from: string) => void]>([
    [
      'too many files',
      (from) => {
        for (let index = 0; index < 1001; index++) writeFileSync(join(from, String(index)), '');
      },
    ],
    ['too many bytes', (from) => execFileSync('truncate', ['-s', '1T', join(from, 'sparse')])],
    ['folders in folders in folders', (from) => mkdirSync(join(from, 'x/'.repeat(150)), { recursive: true })],
  ])('[FL-09] is not copied with %s', async (_what, prepare) => {
    const from = makeWorktree('from');
    prepare(from);
    await expect(copyTree({ from, to: join(folder, 'to'), ...BOUNDS })).rejects.toThrow(
      /too (?:many|large|deep)/,
    );
  });

  test('[FL-09] is not a link itself', async () => {
    symlinkSync('/etc', join(folder, 'from'));
    await expect(copyTree({ from: join(folder, 'from'), to: join(folder, 'to'), ...BOUNDS })).rejects.toThrow(
      /ELOOP|ENOTDIR/,
    );
    expect(existsSync(join(folder, 'to'))).toBe(false);
  });

  test('[FL-09] never leads anywhere else, however fast files and folders become links', async () => {
    const secret = join(folder, 'secret');
    mkdirSync(secret);
    writeFileSync(join(secret, 'file'), 'SECRET');
    const from = makeWorktree('from');
    for (let index = 0; index < 20; index++) {
      mkdirSync(join(from, `d${index}`));
      writeFileSync(join(from, `d${index}/file`), 'plain');
      writeFileSync(join(from, `f${index}`), 'plain');
    }
    symlinkSync(secret, join(from, 'link-d'));
    symlinkSync(join(secret, 'file'), join(from, 'link-f'));
    // Exchanges them with links and back, as fast as it can.
    const swap = [
      'use strict; my ($SWAP, $from) = ($ARGV[1] eq "arm64" ? 276 : 316, $ARGV[0]);',
      'for (;;) { for my $i (0 .. 19) { for my $k ("d", "f") {',
      'my ($a, $b) = ("$from/$k$i", "$from/link-$k"); syscall $SWAP, -100, $a, -100, $b, 2 } } }',
    ].join(' ');
    const child = spawn('perl', ['-e', swap, from, process.arch], { stdio: 'inherit' });
    try {
      let copies = 0;
      for (let round = 0; round < 60; round++) {
        const to = join(folder, `to-${round}`);
        await copyTree({ from, to, ...BOUNDS }).then(
          () => copies++,
          () => {},
        );
        expect(contentsOf(to)).not.toContain('SECRET');
      }
      expect(copies).toBeGreaterThan(0);
    } finally {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
  });
});
