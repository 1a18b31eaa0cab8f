import { existsSync } from 'node:fs';
import {
  chmod,
  chown,
  mkdir,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { HostGit } from './host-git.ts';
import { runProgram } from './run-program.ts';
import { ScratchRepository, readTree, writeFiles } from './scratch-repository.double.ts';
import { ensureWorktree, findCheckout, hideFolder, removeWorktree } from './worktrees.ts';

const BRANCH = 'mahabharatha/shop/worker-0';

let repository: ScratchRepository;
let git: HostGit;
let path: string;
let start: string;
let before: Record<string, string>;
let list: string;

beforeEach(async () => {
  repository = await ScratchRepository.make();
  // A worktree of the user's own, locked, with its folder gone: none of our business.
  await repository.user(['worktree', 'add', '--quiet', '-b', 'mine', join(repository.folder, 'mine')]);
  await rm(join(repository.folder, 'mine'), { recursive: true });
  git = await repository.open();
  start = await git.run(['rev-parse', 'HEAD']);
  path = join(repository.root, '.mahabharatha-worktrees/shop/worker-0');
  before = await repository.untouchables();
  list = await repository.user(['worktree', 'list', '--porcelain']);
});

afterEach(async () => {
  try {
    await removeWorktree(git, path);
    expect(existsSync(path)).toBe(false);
    expect(await repository.untouchables()).toEqual(before);
    expect(await repository.user(['worktree', 'list', '--porcelain'])).toBe(list);
    expect(await repository.user(['status', '--porcelain'])).toBe('');
  } finally {
    await repository[Symbol.asyncDispose]();
  }
});

const ensure = (): Promise<void> => ensureWorktree(git, { path, branch: BRANCH, commit: start });
const admin = (): string => join(repository.root, '.git/worktrees/worker-0');

async function expectWhole(): Promise<void> {
  expect(await readFile(join(path, 'src/b.txt'), 'utf8')).toBe('two\n');
  expect(await repository.user(['symbolic-ref', '--short', 'HEAD'], path)).toBe(BRANCH);
  expect(await repository.user(['status', '--porcelain'], path)).toBe('');
  expect(await findCheckout(git, BRANCH)).toBe(path);
}

describe('a worktree', () => {
  test('[FL-01] is made with its branch, and made only once', async () => {
    await ensure();
    await expectWhole();
    await writeFiles(path, { untracked: 'stays' });
    const pointer = await readFile(join(path, '.git'), 'utf8');
    await ensure();
    expect(await readFile(join(path, 'untracked'), 'utf8')).toBe('stays');
    expect(await readFile(join(path, '.git'), 'utf8')).toBe(pointer);
  });

  test('[FL-01] a branch that is there stays where it is', async () => {
    await repository.user(['branch', BRANCH]);
    await repository.write({ later: 'x' });
    start = await repository.save('later');
    list = await repository.user(['worktree', 'list', '--porcelain']);
    await ensure();
    expect(await repository.user(['log', '-1', '--format=%s'], path)).toBe('first');
  });

  test.each<[string, () => Promise<unknown>]>([
    ['its folder gone', () => rm(path, { recursive: true })],
    ['its registration gone', () => rm(admin(), { recursive: true })],
    [
      'its files half written',
      async () => {
        await rm(join(admin(), 'index'));
        await rm(join(path, 'src'), { recursive: true });
        await writeFile(join(admin(), 'locked'), 'initializing');
      },
    ],
    [
      'its registration half written',
      async () => {
        for (const name of ['index', 'HEAD', 'commondir']) await rm(join(admin(), name));
      },
    ],
    [
      'a registration that never said where',
      async () => {
        await rm(path, { recursive: true });
        await rm(join(admin(), 'gitdir'));
      },
    ],
    [
      'its folder empty',
      async () => {
        await rm(path, { recursive: true });
        await mkdir(path);
      },
    ],
    [
      'a lock on it',
      async () => {
        await repository.user(['worktree', 'lock', path]);
        await rm(path, { recursive: true });
      },
    ],
    ['another branch', () => repository.user(['checkout', '--quiet', '-b', 'elsewhere'], path)],
    ['a pointer that leads elsewhere', () => writeFile(join(path, '.git'), 'gitdir: /etc\n')],
    [
      'a pointer that is a link',
      async () => {
        await rename(join(path, '.git'), join(path, 'real'));
        await symlink('real', join(path, '.git'));
      },
    ],
    [
      'a link for its folder',
      async () => {
        await rename(path, join(repository.folder, 'moved'));
        await symlink(join(repository.folder, 'moved'), path);
      },
    ],
  ])('[FL-15] is mended with %s', async (_what, harm) => {
    await ensure();
    await harm();
    await ensure();
    await expectWhole();
    await ensure();
  });

  test('[FL-09] is filled by programs of the user only when wanted', async () => {
    await repository.user(['config', 'filter.shout.smudge', 'tr a-z A-Z']);
    await repository.write({ '.gitattributes': 'b.txt filter=shout\n' });
    start = await repository.save('attributes');
    before = await repository.untouchables();
    list = await repository.user(['worktree', 'list', '--porcelain']);
    await ensure();
    expect(await readFile(join(path, 'src/b.txt'), 'utf8')).toBe('two\n');
    await removeWorktree(git, path);
    await ensureWorktree(git, { path, branch: BRANCH, commit: start, filters: 'user' });
    expect(await readFile(join(path, 'src/b.txt'), 'utf8')).toBe('TWO\n');
  });
});

describe('[FL-11] removal', () => {
  test('follows no link, and is stopped by nothing', async () => {
    await ensure();
    const outside = join(repository.folder, 'outside');
    await writeFiles(outside, { precious: 'x', 'folder/precious': 'y' });
    await symlink(outside, join(path, 'link'));
    await symlink(join(outside, 'precious'), join(path, 'link-to-file'));
    await symlink('loop', join(path, 'loop'));
    await writeFiles(path, { 'locked/deep/file': 'x', 'nested/.git/config': '[core]\n' });
    await chmod(join(path, 'locked/deep'), 0o500);
    await chmod(join(path, 'locked'), 0);
    await writeFile(Buffer.concat([Buffer.from(`${path}/`), Buffer.from([0xff, 0x0a])]), 'x');
    // Deeper than a path may be long.
    const name = 'd'.repeat(200);
    const script = `for i in $(seq 1 40); do mkdir ${name} && cd -P ${name} || exit 1; done`;
    const made = await runProgram(['bash', '-c', script], {
      cwd: path,
      env: { PATH: '/usr/bin:/bin' },
      limitBytes: 1000,
      timeoutMs: 60_000,
    });
    expect(made).toMatchObject({ code: 0 });
    await repository.user(['worktree', 'lock', path]);
    if (process.getuid?.() === 0) await chown(join(path, 'a.txt'), 61_234, 61_234);
    await removeWorktree(git, path);
    expect(await readTree(outside)).toEqual({ precious: 'x', 'folder/precious': 'y' });
  });

  test('of a link removes the link', async () => {
    const outside = join(repository.folder, 'outside');
    await writeFiles(outside, { precious: 'x' });
    await mkdir(dirname(path), { recursive: true });
    await symlink(outside, path);
    await removeWorktree(git, path);
    expect(await readdir(outside)).toEqual(['precious']);
  });
});

test('[FL-09] our folders do not show in the status of the user, and a file that was there stays', async () => {
  const folder = join(repository.root, '.mahabharatha');
  await hideFolder(folder);
  await writeFiles(folder, { 'state/x.json': '{}' });
  await ensure();
  expect(await repository.user(['status', '--porcelain'])).toBe('');
  await writeFile(join(folder, '.gitignore'), 'mine\n');
  await hideFolder(folder);
  expect(await readFile(join(folder, '.gitignore'), 'utf8')).toBe('mine\n');
  expect((await stat(folder)).isDirectory()).toBe(true);
  await rm(folder, { recursive: true });
});
