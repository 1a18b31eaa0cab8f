import { existsSync } from 'node:fs';
import { chmod, mkdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findAuthor } from './author.ts';
import { HostGit } from './host-git.ts';
import { moveRef } from './refs.ts';
import { ScratchRepository, writeFiles } from './scratch-repository.double.ts';

let repository: ScratchRepository;
beforeEach(async () => {
  repository = await ScratchRepository.make();
});
afterEach(() => repository[Symbol.asyncDispose]());

test('[FL-01] a repository is found from a folder of it, and from a worktree of it', async () => {
  const git = await HostGit.open(join(repository.root, 'src'), repository.environment);
  expect(git).toMatchObject({ root: repository.root, commonDir: join(repository.root, '.git') });
  const linked = join(repository.folder, 'linked');
  await repository.user(['worktree', 'add', '--quiet', linked]);
  expect(await HostGit.open(linked, repository.environment)).toMatchObject({
    root: linked,
    commonDir: join(repository.root, '.git'),
  });
});

test('[FL-01] what is no repository, bare or without a commit is refused with what to do', async () => {
  const bare = join(repository.folder, 'bare');
  const empty = join(repository.folder, 'empty');
  await mkdir(bare);
  await mkdir(empty);
  await repository.user(['init', '--quiet', '--bare'], bare);
  await repository.user(['init', '--quiet'], empty);
  const open = (folder: string): Promise<HostGit> => HostGit.open(folder, repository.environment);
  await expect(open(repository.folder)).rejects.toMatchObject({ code: 'INVALID_REQUEST', hint: /git init/ });
  await expect(open(bare)).rejects.toMatchObject({ code: 'INVALID_REQUEST', hint: /not bare/ });
  await expect(open(empty)).rejects.toMatchObject({ code: 'INVALID_REQUEST', hint: /first commit/ });
  await expect(open('/no/such/folder')).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  await expect(HostGit.open(repository.root, { PATH: '/nowhere' })).rejects.toMatchObject({
    code: 'DRIVER_UNAVAILABLE',
  });
});

test('[FL-10] variables of the caller do not lead git astray', async () => {
  const git = await HostGit.open(repository.root, {
    ...repository.environment,
    GIT_DIR: '/nowhere',
    GIT_INDEX_FILE: '/nowhere',
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'user.name',
    GIT_CONFIG_VALUE_0: 'Somebody',
    GIT_TRACE: '1',
  });
  expect(await git.run(['config', 'user.name'])).toBe('Ada');
  expect((await git.attempt(['status'])).stderr).toBe('');
});

test('[FL-09] neither odd settings nor hooks of the user matter, and none is changed', async () => {
  const canary = join(repository.folder, 'canary');
  const settings = {
    'commit.gpgSign': 'true',
    'gpg.program': `touch ${canary}`,
    'merge.ff': 'only',
    'core.autocrlf': 'true',
    'core.fsmonitor': `touch ${canary}`,
    'core.hooksPath': join(repository.root, 'hooks'),
    'init.defaultBranch': 'trunk',
    'protocol.version': '0',
    'transfer.fsckObjects': 'true',
  };
  for (const [key, value] of Object.entries(settings)) await repository.user(['config', key, value]);
  await writeFiles(repository.root, { 'hooks/reference-transaction': `#!/bin/sh\ntouch ${canary}\n` });
  await chmod(join(repository.root, 'hooks/reference-transaction'), 0o755);
  const before = await repository.untouchables();
  const git = await repository.open();
  const tree = await git.run(['write-tree']);
  const env = {
    GIT_AUTHOR_NAME: 'x',
    GIT_AUTHOR_EMAIL: 'x',
    GIT_COMMITTER_NAME: 'x',
    GIT_COMMITTER_EMAIL: 'x',
  };
  const commit = await git.run(['commit-tree', '-p', 'HEAD', '-m', 'x', tree], { env });
  await git.run(['update-ref', 'refs/heads/other', commit]);
  await git.run(['status']);
  expect(await git.run(['cat-file', '-p', commit])).not.toContain('gpgsig');
  expect(existsSync(canary)).toBe(false);
  expect(await repository.untouchables()).toEqual(before);
});

test('[FL-09] output has a bound, and failures have the words of git', async () => {
  const git = await repository.open();
  await expect(git.run(['cat-file', '-p', 'HEAD'], { limitBytes: 10 })).rejects.toThrow(/more than 10 bytes/);
  expect(await git.read(['cat-file', '-p', 'HEAD'], { limitBytes: 10, cut: true })).toHaveLength(10);
  expect(await git.count(['cat-file', '-p', 'HEAD'])).toBeGreaterThan(100);
  await expect(git.run(['rev-parse', 'no-such'])).rejects.toMatchObject({
    code: 'FLEET_GIT',
    message: /ambiguous argument 'no-such'/,
  });
});

test('[FL-03] commits are those of the user, or of the worker if nobody is named', async () => {
  const git = await repository.open();
  expect(await findAuthor(git, 3)).toEqual({ name: 'Ada', email: 'ada@example.org' });
  await repository.user(['config', '--unset', 'user.email']);
  expect(await findAuthor(git, 3)).toEqual({
    name: 'Mahabharatha worker 3',
    email: 'worker-3@mahabharatha.invalid',
  });
  expect(await findAuthor(git, undefined)).toEqual({
    name: 'Mahabharatha',
    email: 'fleet@mahabharatha.invalid',
  });
});

test('[FL-15] the lock of a crash on a ref of ours is overcome, when it is no more in use, and those of others are not', async () => {
  const git = await repository.open();
  const to = await git.run(['rev-parse', 'HEAD']);
  const old = new Date(Date.now() - 60_000);
  await writeFiles(repository.root, {
    '.git/refs/heads/mahabharatha/shop/old.lock': '',
    '.git/refs/heads/mahabharatha/shop/new.lock': '',
    '.git/refs/heads/theirs.lock': '',
  });
  for (const name of ['mahabharatha/shop/old', 'theirs'])
    await utimes(join(repository.root, `.git/refs/heads/${name}.lock`), old, old);
  const move = (branch: string): Promise<void> =>
    moveRef(git, { ref: `refs/heads/${branch}`, to, from: undefined, why: 'test' });
  await move('mahabharatha/shop/old');
  const began = performance.now();
  await move('mahabharatha/shop/new');
  expect(performance.now() - began).toBeGreaterThan(1000);
  await expect(move('theirs')).rejects.toThrow(/lock/);
  await expect(move('mahabharatha/shop/old')).rejects.toThrow(/already exists/);
});
