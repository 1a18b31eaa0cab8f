import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { matchesPathPattern } from './path-match.ts';
import { Secret } from './secret.ts';
import { copyIgnoredFiles, type CopiedFiles, type CopyIgnoredOptions } from './worktree-files.ts';

let folder = '';
let root = '';
let worktree = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-files-'));
  root = join(folder, 'root');
  worktree = join(folder, 'worktree');
  mkdirSync(root);
  mkdirSync(worktree);
});
afterEach(() => rmSync(folder, { recursive: true }));

function put(path: string, text = path, base = root, mode = 0o644): void {
  mkdirSync(dirname(join(base, path)), { recursive: true });
  writeFileSync(join(base, path), text, { mode });
}

function copy(
  patterns: string[],
  listed: string[],
  more: Partial<CopyIgnoredOptions> = {},
): Promise<CopiedFiles> {
  return copyIgnoredFiles({ root, worktree, patterns, listIgnored: () => Promise.resolve(listed), ...more });
}

describe('files that git does not have', () => {
  test('[FL-01] come into a new worktree, those that are asked for', async () => {
    for (const path of ['.env', '.env.local', 'other', 'app/.env', 'app/config/dev.json']) put(path);
    put('run.sh', 'x', root, 0o755);
    const listed = ['.env', '.env.local', 'other', 'app/.env', 'app/config/dev.json', 'run.sh', 'gone'];
    const { copied, left } = await copy(['.env', 'app/**', 'run.*', 'gone'], listed);
    expect(copied).toEqual(['.env', 'app/.env', 'app/config/dev.json', 'run.sh']);
    expect(left).toEqual([{ path: 'gone', why: 'it is gone' }]);
    expect(readFileSync(join(worktree, 'app/config/dev.json'), 'utf8')).toBe('app/config/dev.json');
    expect(existsSync(join(worktree, '.env.local'))).toBe(false);
    const modes = ['.env', 'run.sh', 'app'].map((path) => lstatSync(join(worktree, path)).mode & 0o7777);
    expect(modes).toEqual([0o600, 0o700, 0o700]);
  });

  test('[FL-01] are those that git lists, of a real repository with a real worktree', async () => {
    const git = (...words: string[]): string =>
      execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@x', ...words], {
        cwd: root,
        encoding: 'utf8',
      });
    git('init', '-q');
    put('.gitignore', '.env\n');
    put('.env', 'A=1');
    put('tracked', 'committed');
    git('add', '.gitignore', 'tracked');
    git('commit', '-qm', 'x');
    put('tracked', 'changed since');
    rmSync(worktree, { recursive: true });
    git('worktree', 'add', '-q', worktree);
    const listIgnored = (): Promise<string[]> =>
      Promise.resolve(
        git('ls-files', '-z', '--others')
          .split('\0')
          .filter((path) => path !== ''),
      );
    const { copied } = await copyIgnoredFiles({ root, worktree, patterns: ['**'], listIgnored });
    expect(copied).toEqual(['.env']);
    expect(readFileSync(join(worktree, 'tracked'), 'utf8')).toBe('committed');
  });

  test('[FL-01] never take the place of something that is there', async () => {
    put('.env', 'new');
    put('.env', 'old', worktree);
    put('link', 'new');
    symlinkSync(join(folder, 'outside'), join(worktree, 'link'));
    const { copied, left } = await copy(['*'], ['.env', 'link']);
    expect(copied).toEqual([]);
    expect(left.map(({ why }) => why)).toEqual([
      'the worktree has one already',
      'the worktree has one already',
    ]);
    expect(readFileSync(join(worktree, '.env'), 'utf8')).toBe('old');
    expect(existsSync(join(folder, 'outside'))).toBe(false);
  });

  test('[FL-09] are not reached or written through links, at the end or on the way', async () => {
    const outside = join(folder, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'secret'), 'secret');
    symlinkSync(join(outside, 'secret'), join(root, 'link'));
    symlinkSync(outside, join(root, 'way'));
    put('deep/file');
    symlinkSync(outside, join(worktree, 'deep'));
    const { copied, left } = await copy(['**'], ['link', 'way/secret', 'deep/file']);
    expect(copied).toEqual([]);
    expect(left.map(({ path }) => path)).toEqual(['deep/file', 'link', 'way/secret']);
    expect(readdirSync(outside)).toEqual(['secret']);
    expect(readdirSync(worktree)).toEqual(['deep']);
  });

  test('[FL-09] are not folders, pipes, data of git, our own data, or files of other places', async () => {
    mkdirSync(join(root, 'folder'));
    execFileSync('mkfifo', [join(root, 'pipe')]);
    for (const path of [
      '.git/config',
      'sub/.git/config',
      '.mahabharatha/state/f.json',
      '.mahabharatha-worktrees/f/x',
    ])
      put(path);
    writeFileSync(join(folder, 'outside'), 'x');
    const listed = [
      'folder',
      'pipe',
      '.git/config',
      'sub/.git/config',
      '.mahabharatha/state/f.json',
      '.mahabharatha-worktrees/f/x',
    ];
    const odd = ['../outside', join(folder, 'outside'), 'folder/', 'a//b', './x', '', 'a\0b'];
    const { copied, left } = await copy(['**', '*', '../*'], [...listed, ...odd]);
    expect(copied).toEqual([]);
    expect(left.map(({ path }) => path)).toEqual(['folder', 'pipe']);
    expect(readdirSync(worktree)).toEqual([]);
  });

  test('[FL-08] are not those with a key in them that only the gate may know', async () => {
    put('.env', 'A=1\nKEY="sk-1"\n');
    put('.env.local', 'A=1');
    const { copied, left } = await copy(['.env*'], ['.env', '.env.local'], {
      withhold: [new Secret('sk-1')],
    });
    expect(copied).toEqual(['.env.local']);
    expect(left[0]).toMatchObject({ path: '.env' });
    expect(left[0]?.why).not.toContain('sk-1');
  });

  test('[FL-01] are bounded, each and together', async () => {
    put('a', 'x'.repeat(101));
    put('b', 'x'.repeat(90));
    put('c', 'x'.repeat(90));
    const { copied, left } = await copy(['*'], ['a', 'b', 'c'], { mostBytes: 100, mostTotalBytes: 150 });
    expect([copied, left.map(({ path }) => path)]).toEqual([['b'], ['a', 'c']]);
  });

  test.skipIf(process.geteuid?.() !== 0)('[FL-09] belong to whom they are for', async () => {
    put('app/.env');
    await copy(['**'], ['app/.env'], { owner: { uid: 12_345, gid: 12_346 } });
    for (const path of ['app', 'app/.env']) {
      expect(lstatSync(join(worktree, path))).toMatchObject({ uid: 12_345, gid: 12_346 });
    }
  });
});

describe('a pattern of paths', () => {
  test.each([
    ['.env', '.env', true],
    ['.env', 'app/.env', false],
    ['./.env', '.env', true],
    ['/.env', '.env', true],
    ['.env*', '.env.local', true],
    ['*', 'a/b', false],
    ['**', 'a/b', true],
    ['**/.env', '.env', true],
    ['**/.env', 'a/b/.env', true],
    ['a/**', 'a/b/c', true],
    ['a/**', 'a', false],
    ['a/', 'a/b/c', true],
    ['a/**/z', 'a/z', true],
    ['a/**/z', 'a/b/c/z', true],
    ['a/**/z', 'a/b/c/y', false],
    ['a/**/b/**/c', 'a/b/x/b/c', true],
    ['a/*/c', 'a/b/c', true],
    ['a/*/c', 'a/b/b/c', false],
    ['', 'a', false],
    ['..', 'a', false],
  ])('[FL-01] %j on %j: %s', (pattern, path, isMatch) => {
    expect(matchesPathPattern(pattern, path)).toBe(isMatch);
  });

  test('[FL-01] with many stars ends', () => {
    expect(matchesPathPattern(`${'**/a/'.repeat(200)}b`, 'a/'.repeat(2000).slice(0, -1))).toBe(false);
  });
});
