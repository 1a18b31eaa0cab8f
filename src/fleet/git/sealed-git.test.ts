import { existsSync } from 'node:fs';
import { readFile, stat, unlink, writeFile, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  ScratchRepository,
  sealedWorker,
  writeFiles,
  type ScratchSealed,
} from './scratch-repository.double.ts';

const BRANCH = 'mahabharatha/shop/worker-0';

let repository: ScratchRepository;
let worker: ScratchSealed;
let before: Record<string, string>;

beforeEach(async () => {
  repository = await ScratchRepository.make();
  await repository.write({ '.git/hooks/post-checkout': '#!/bin/sh\nexit 1\n' });
  worker = await sealedWorker(repository);
  await worker.place.prepare();
  before = await repository.untouchables();
  await worker.place.settle(worker.run);
});

afterEach(async () => {
  try {
    expect(await repository.untouchables()).toEqual(before);
    await repository.user(['fsck', '--strict', '--no-dangling']);
  } finally {
    await repository[Symbol.asyncDispose]();
  }
});

const commitAll = (message = 'work', allowEmpty = false): Promise<{ readonly moved: boolean }> =>
  worker.place.commit(worker.run, message, { allowEmpty });

describe('a worker in a cell', () => {
  test('[FL-01] has a worktree on its branch, and git in the cell knows it', async () => {
    expect(await readFile(join(worker.worktree, 'src/b.txt'), 'utf8')).toBe('two\n');
    expect(await worker.agent(['status', '--porcelain', '--branch'])).toBe(`## ${BRANCH}`);
    expect(await worker.agent(['log', '--format=%s'])).toBe('first');
    expect(await repository.user(['worktree', 'list', '--porcelain'])).toContain(
      `branch refs/heads/${BRANCH}`,
    );
    expect(await repository.user(['status', '--porcelain'], worker.worktree)).toBe('');
  });

  test('[FL-03] its commit is carried out, with the names of what it changed', async () => {
    const from = await worker.place.head();
    await writeFiles(worker.worktree, { 'src/b.txt': 'changed\n', 'new "name"\nä.txt': 'x\n' });
    await unlink(join(worker.worktree, 'a.txt'));
    expect(await commitAll('Do it\n\n# not a comment\n')).toEqual({ moved: true });
    const taken = await worker.place.takeCommits(worker.run);
    expect(taken.files.toSorted()).toEqual(['a.txt', 'new "name"\nä.txt', 'src/b.txt']);
    expect(await worker.place.head()).toBe(taken.commit);
    expect(await repository.user(['log', '-1', '--format=%an <%ae>%n%B', BRANCH])).toBe(
      'Ada <ada@example.org>\nDo it\n\n# not a comment\n',
    );
    // The index followed without the files being touched.
    expect(await repository.user(['status', '--porcelain'], worker.worktree)).toBe('');
    const diff = Buffer.from(await worker.place.diff(from, taken.commit, 1024 ** 2)).toString();
    expect(diff).toContain('-two\n+changed\n');
    expect(await worker.place.diff(from, taken.commit, 10)).toHaveLength(10);
  });

  test('[FL-03] commits that the agent made itself come along, from any branch', async () => {
    await worker.agent(['checkout', '--quiet', '-b', 'mine']);
    await writeFiles(worker.worktree, { one: '1' });
    await worker.agent(['add', 'one']);
    await worker.agent(['commit', '--quiet', '-m', 'by the agent']);
    await writeFiles(worker.worktree, { two: '2' });
    expect(await commitAll()).toEqual({ moved: true });
    expect((await worker.place.takeCommits(worker.run)).files).toEqual(['one', 'two']);
    expect(await repository.user(['log', '--format=%s', BRANCH])).toBe('work\nby the agent\nfirst');
    expect(await worker.agent(['symbolic-ref', '--short', 'HEAD'])).toBe(BRANCH);
  });

  test('[FL-03] nothing to commit is told, and an empty commit is made when wanted', async () => {
    expect(await commitAll()).toEqual({ moved: false });
    expect(await worker.place.takeCommits(worker.run)).toEqual({
      commit: await worker.place.head(),
      files: [],
    });
    expect(await commitAll('empty', true)).toEqual({ moved: true });
    expect((await worker.place.takeCommits(worker.run)).files).toEqual([]);
    expect(await repository.user(['log', '-1', '--format=%s', BRANCH])).toBe('empty');
    // Two tasks of one level: what was taken before is no obstacle.
    await writeFiles(worker.worktree, { next: 'x' });
    await commitAll('next');
    expect((await worker.place.takeCommits(worker.run)).files).toEqual(['next']);
  });

  test('[FL-03] commits that are not accepted do not reach the repository', async () => {
    const from = await worker.place.head();
    await writeFiles(worker.worktree, { foreign: 'x' });
    await commitAll();
    const refuse = (): never => {
      throw new Error('not owned');
    };
    await expect(worker.place.takeCommits(worker.run, refuse)).rejects.toThrow('not owned');
    expect(await worker.place.head()).toBe(from);
    const commit = await worker.agent(['rev-parse', 'HEAD']);
    await expect(repository.user(['cat-file', '-e', commit])).rejects.toThrow(/cat-file/);
  });

  test('[FL-03] a repository within the worktree is named instead of being lost', async () => {
    await mkdir(join(worker.worktree, 'inner'));
    await worker.run(['git', 'init', '--quiet', 'inner']);
    await expect(commitAll()).rejects.toThrow(/inner/);
    await writeFiles(worker.worktree, { 'inner/file': 'x' });
    const inner = {
      GIT_DIR: join(worker.worktree, 'inner/.git'),
      GIT_WORK_TREE: join(worker.worktree, 'inner'),
    };
    await worker.agent(['add', '-A'], inner);
    await worker.agent(['-c', 'user.name=x', '-c', 'user.email=x', 'commit', '--quiet', '-m', 'x'], inner);
    await expect(commitAll()).rejects.toThrow(/repositories of their own: "inner"/);
  });

  test('[FL-08] what only the user ignores is not committed either', async () => {
    await repository.write({ '.git/info/exclude': '*.secret\n' });
    await writeFiles(repository.home, { '.config/git/ignore': '*.mine\n' });
    before = await repository.untouchables();
    await worker.place.settle(worker.run);
    await writeFiles(worker.worktree, { '.env': 'KEY=1', 'x.secret': '1', 'x.mine': '1', kept: '1' });
    await commitAll();
    expect((await worker.place.takeCommits(worker.run)).files).toEqual(['kept']);
  });
});

describe('a worker that was lost', () => {
  test('[FL-12] leaves its commits under a ref and its changes as a patch', async () => {
    const head = await worker.place.head();
    await writeFiles(worker.worktree, { committed: 'x' });
    await worker.agent(['add', '-A']);
    await worker.agent(['commit', '--quiet', '-m', 'never carried out']);
    const lost = await worker.agent(['rev-parse', 'HEAD']);
    await writeFiles(worker.worktree, {
      'a.txt': 'half\n',
      new: 'y',
      '.env': 'KEY=1',
      'node_modules/x': '1',
    });
    await writeFile(join(worker.inner, 'index.lock'), '');
    const { ref, patch, problem } = await worker.place.settle(worker.run);
    expect(problem).toBeUndefined();
    expect(ref).toBe(`refs/mahabharatha/shop/rescued/worker-0-${lost.slice(0, 12)}`);
    expect(await repository.user(['rev-parse', ref ?? ''])).toBe(lost);
    expect(Buffer.from(patch ?? []).toString()).toMatch(/-one\n\+half\n[^]*\+\+\+ b\/new/);
    expect(await worker.place.head()).toBe(head);
    expect(await worker.agent(['rev-parse', 'HEAD'])).toBe(head);
    expect(await worker.agent(['status', '--porcelain'])).toBe('');
    expect(existsSync(join(worker.worktree, 'new'))).toBe(false);
    expect(await readFile(join(worker.worktree, 'a.txt'), 'utf8')).toBe('one\n');
    expect(await readFile(join(worker.worktree, '.env'), 'utf8')).toBe('KEY=1');
    expect(existsSync(join(worker.worktree, 'node_modules/x'))).toBe(true);
    // The patch is good for the commit that was kept.
    await repository.user(['worktree', 'add', '--quiet', '--detach', join(repository.folder, 'look'), lost]);
    await writeFile(join(repository.folder, 'patch'), patch ?? '');
    await repository.user(['apply', join(repository.folder, 'patch')], join(repository.folder, 'look'));
    await repository.user(['worktree', 'remove', '--force', join(repository.folder, 'look')]);
  });

  test('[FL-12] changes that git was told not to see are undone, and other files keep their times', async () => {
    await worker.agent(['update-index', '--assume-unchanged', 'a.txt']);
    await writeFiles(worker.worktree, { 'a.txt': 'hidden\n' });
    const { mtimeMs } = await stat(join(worker.worktree, 'src/b.txt'));
    await worker.place.settle(worker.run);
    expect(await readFile(join(worker.worktree, 'a.txt'), 'utf8')).toBe('one\n');
    expect((await stat(join(worker.worktree, 'src/b.txt'))).mtimeMs).toBe(mtimeMs);
  });

  test.each([
    ['has no objects', (): Promise<void> => rm(join(worker.inner, 'objects'), { recursive: true })],
    ['has no HEAD', (): Promise<void> => rm(join(worker.inner, 'HEAD'))],
    ['is empty', (): Promise<unknown> => worker.run(['find', worker.inner, '-mindepth', '1', '-delete'])],
    ['has garbage for configuration', (): Promise<void> => writeFile(join(worker.inner, 'config'), '[[[')],
    [
      'has a file for refs',
      async (): Promise<void> => {
        await rm(join(worker.inner, 'refs'), { recursive: true });
        await writeFile(join(worker.inner, 'refs'), '');
      },
    ],
    [
      'has a ref in the way',
      async (): Promise<void> => {
        await rm(join(worker.inner, 'refs/heads/mahabharatha'), { recursive: true });
        await worker.agent(['update-ref', 'refs/heads/mahabharatha', 'HEAD^{commit}']).catch(() => '');
        await writeFile(join(worker.inner, 'refs/heads/mahabharatha'), `${await worker.place.head()}\n`);
      },
    ],
  ])('[FL-12] gets a new git folder when its own %s, and goes on', async (_what, harm) => {
    await writeFiles(worker.worktree, { first: '1' });
    await commitAll();
    const { commit } = await worker.place.takeCommits(worker.run);
    await harm();
    await worker.place.settle(worker.run);
    expect(await worker.agent(['rev-parse', 'HEAD'])).toBe(commit);
    expect(await worker.agent(['status', '--porcelain'])).toBe('');
    await writeFiles(worker.worktree, { second: '2' });
    await commitAll();
    expect((await worker.place.takeCommits(worker.run)).files).toEqual(['second']);
  });

  test('[FL-12] that was taken over by a new orchestrator goes on with the next commit', async () => {
    await writeFiles(worker.worktree, { first: '1' });
    await commitAll();
    await worker.place.takeCommits(worker.run);
    worker = await sealedWorker(repository);
    await worker.place.prepare();
    expect(await worker.place.settle(worker.run)).toEqual({});
    await writeFiles(worker.worktree, { second: '2' });
    await commitAll();
    expect((await worker.place.takeCommits(worker.run)).files).toEqual(['second']);
  });
});

describe('the next level', () => {
  test('[FL-05] begins at the merge: files, branch and history', async () => {
    await writeFiles(worker.worktree, { mine: '1', left: 'over' });
    await worker.agent(['add', 'mine']);
    await worker.agent(['commit', '--quiet', '-m', 'mine']);
    const { commit } = await worker.place.takeCommits(worker.run);
    await repository.user(['checkout', '--quiet', '--detach', commit]);
    await repository.write({ 'from-another': 'x' });
    const merge = await repository.save('merge');
    await repository.user(['checkout', '--quiet', 'main']);
    await worker.place.moveTo(worker.run, merge);
    expect(await worker.place.head()).toBe(merge);
    expect(await worker.agent(['log', '--format=%s'])).toBe('merge\nmine\nfirst');
    expect(existsSync(join(worker.worktree, 'from-another'))).toBe(true);
    expect(existsSync(join(worker.worktree, 'left'))).toBe(false);
    expect(await repository.user(['for-each-ref', 'refs/mahabharatha/'])).toBe('');
    expect(await repository.user(['status', '--porcelain'], worker.worktree)).toBe('');
  });

  test('[FL-05] keeps commits that the merge does not have', async () => {
    await writeFiles(worker.worktree, { mine: '1' });
    await commitAll();
    const { commit } = await worker.place.takeCommits(worker.run);
    await repository.write({ other: 'x' });
    const next = await repository.save('other');
    await worker.place.moveTo(worker.run, next);
    expect(
      await repository.user(['for-each-ref', '--format=%(objectname)', 'refs/mahabharatha/shop/rescued']),
    ).toBe(commit);
  });
});

test('[FL-09] what is mounted: worktree and git folder to write, pointer and base store to read', () => {
  expect(worker.place.folders.map(({ name, writable }) => [name, writable])).toEqual([
    ['workspace', true],
    ['gitfile', undefined],
    ['git', true],
    ['objects', undefined],
  ]);
});

test('[FL-15] removed, nothing of the worker is left but its branch', async () => {
  await worker.place.remove();
  before = await repository.untouchables();
  expect(existsSync(worker.worktree)).toBe(false);
  expect(existsSync(worker.inner)).toBe(false);
  expect(existsSync(join(repository.root, '.git/worktrees'))).toBe(false);
  expect(await repository.user(['branch', '--list', BRANCH])).toContain(BRANCH);
  await worker.place.remove();
});

test.skipIf(process.getuid?.() !== 0)('[FL-09] works for a user that owns nothing else', async () => {
  const owner = { uid: 61_234, gid: 61_234 };
  const other = await sealedWorker(repository, { worker: 1, owner });
  await other.place.prepare(owner);
  before = await repository.untouchables();
  await other.place.settle(other.run);
  expect((await stat(join(other.worktree, 'a.txt'))).uid).toBe(owner.uid);
  await other.run(['tee', 'made'], { input: Buffer.from('x') });
  await other.place.commit(other.run, 'made', { allowEmpty: false });
  expect((await other.place.takeCommits(other.run)).files).toEqual(['made']);
  await expect(other.run(['tee', join(other.base.objects, 'x')])).resolves.toMatchObject({ code: 1 });
  await other.place.remove();
  before = await repository.untouchables();
});
