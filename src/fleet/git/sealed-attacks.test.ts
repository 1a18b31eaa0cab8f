import { existsSync } from 'node:fs';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { describeConflict } from './describe-conflict.ts';
import { mergeInto, mergeIntoTarget } from './merge-branches.ts';
import type { RunInCell } from './cell-git.ts';
import {
  ScratchRepository,
  sealedWorker,
  writeFiles,
  type ScratchSealed,
} from './scratch-repository.double.ts';
import { ensureWorktree, removeWorktree } from './worktrees.ts';

const AUTHOR = { name: 'Ada', email: 'ada@example.org' };
const BRANCH = 'mahabharatha/shop/worker-0';
const STAGING = 'mahabharatha/shop/staging';
const GATE = 'mahabharatha/shop/gate';

let repository: ScratchRepository;
let worker: ScratchSealed;
let before: Record<string, string>;
let canary: string;

beforeEach(async () => {
  repository = await ScratchRepository.make();
  canary = join(repository.folder, 'canary');
  await repository.user(['branch', STAGING]);
  // The user's own programs for files of certain kinds: workers must not be able to call them.
  await repository.user(['config', 'filter.evil.smudge', `touch ${canary}`]);
  await repository.user(['config', 'filter.evil.process', `touch ${canary}`]);
  await repository.user(['config', 'merge.evil.driver', `touch ${canary}`]);
  await repository.user(['config', 'diff.evil.textconv', `touch ${canary}`]);
  await repository.user(['config', 'diff.evil.command', `touch ${canary}`]);
  await repository.user(['config', 'core.fsmonitor', `touch ${canary}`]);
  for (const hook of [
    'post-checkout',
    'post-merge',
    'reference-transaction',
    'post-index-change',
    'pre-commit',
  ]) {
    const path = join(repository.root, '.git/hooks', hook);
    await writeFiles(repository.root, { [`.git/hooks/${hook}`]: `#!/bin/sh\ntouch ${canary}\n` });
    await chmod(path, 0o755);
  }
  worker = await sealedWorker(repository);
  await worker.place.prepare();
  before = await repository.untouchables();
  await worker.place.settle(worker.run);
  expect(existsSync(canary)).toBe(false);
});

afterEach(async () => {
  try {
    expect(existsSync(canary)).toBe(false);
    expect(await repository.untouchables()).toEqual(before);
    await repository.user(['-c', 'core.fsmonitor=false', 'fsck', '--strict', '--no-dangling']);
  } finally {
    await repository[Symbol.asyncDispose]();
  }
});

/** Everything the host ever does with a worker, and with what it has committed. */
async function hostDoesAll(): Promise<string[]> {
  await worker.place.commit(worker.run, 'work', { allowEmpty: true });
  expect(existsSync(canary)).toBe(false);
  const from = await worker.place.head();
  const { commit, files } = await worker.place.takeCommits(worker.run);
  await worker.place.diff(from, commit, 1024 ** 2);
  const merge = { branch: BRANCH, message: 'merge', author: AUTHOR };
  const merged = await mergeInto(worker.git, { ref: STAGING, ...merge });
  const gate = join(repository.root, '.mahabharatha-worktrees/shop/gate');
  if (merged.kind !== 'conflict')
    await ensureWorktree(worker.git, { path: gate, branch: GATE, commit: merged.commit });
  await removeWorktree(worker.git, gate);
  await worker.place.settle(worker.run);
  await worker.place.prepare();
  return files;
}

describe('[FL-09] nothing of the host runs because of', () => {
  test('the configuration and hooks of the private git folder', async () => {
    // In the cell they may run: that is the cell's own affair. Here the folder stands for the cell, so they tell who ran.
    const host = `test -n "$GIT_OPTIONAL_LOCKS" && touch ${canary}; exit 1`;
    await writeFile(
      join(worker.inner, 'config'),
      `[core]\n\tbare = false\n\tfsmonitor = "${host.replaceAll('"', '\\"')}"\n\tsshCommand = touch ${canary}\n` +
        `[uploadpack]\n\tpackObjectsHook = touch ${canary}\n[user]\n\tname = x\n\temail = y\n`,
    );
    await mkdir(join(worker.inner, 'hooks'), { recursive: true });
    for (const hook of ['pre-commit', 'post-commit', 'post-checkout', 'reference-transaction']) {
      await writeFile(join(worker.inner, 'hooks', hook), `#!/bin/sh\ntouch ${canary}\n`, { mode: 0o755 });
    }
    await writeFiles(worker.worktree, { made: 'x' });
    expect(await hostDoesAll()).toEqual(['made']);
  });

  test('attributes with filters, merge drivers and diff programs', async () => {
    await writeFiles(worker.worktree, {
      '.gitattributes': '* filter=evil merge=evil diff=evil\n',
      'a.txt': 'changed by the worker\n',
    });
    expect((await hostDoesAll()).toSorted()).toEqual(['.gitattributes', 'a.txt']);
    // Both sides changed the same line, and the user has such attributes checked out.
    await repository.write({ '.gitattributes': '* merge=evil\n' });
    await writeFiles(worker.worktree, { 'a.txt': 'again\n' });
    await worker.place.commit(worker.run, 'again', { allowEmpty: false });
    await worker.place.takeCommits(worker.run);
    const theirs = await worker.git.run(['hash-object', '-w', '--stdin'], { input: 'somebody else\n' });
    const tree = await worker.git.run(['mktree'], { input: `100644 blob ${theirs}\ta.txt\n` });
    const other = await worker.git.run(['commit-tree', '-p', 'main', '-m', 'other', tree], {
      env: { GIT_AUTHOR_NAME: 'x', GIT_AUTHOR_EMAIL: 'x', GIT_COMMITTER_NAME: 'x', GIT_COMMITTER_EMAIL: 'x' },
    });
    await worker.git.run(['update-ref', 'refs/heads/other', other]);
    const merged = await mergeInto(worker.git, {
      ref: 'other',
      branch: BRANCH,
      message: 'm',
      author: AUTHOR,
    });
    expect(merged).toMatchObject({ kind: 'conflict', files: expect.arrayContaining(['a.txt']) as unknown });
  });

  test('a worktree full of traps', async () => {
    const { worktree } = worker;
    await worker.run(['git', 'init', '--quiet', 'trap']);
    await writeFiles(worktree, {
      'trap/.git/config': `[core]\n\tbare = false\n\trepositoryformatversion = 0\n\tfsmonitor = touch ${canary}\n`,
      'trap/.gitignore': '*\n',
      '.gitignore': 'trap\nnode_modules\n.env\n',
      '.gitmodules': '[submodule "x"]\n\tpath = sub\n\turl = ./x\n',
      'with "quotes"': 'x',
      'with\nnewline': 'x',
    });
    await symlink('loop', join(worktree, 'loop'));
    await symlink('..', join(worktree, 'up'));
    await symlink('/etc', join(worktree, 'outside'));
    await writeFile(Buffer.concat([Buffer.from(`${worktree}/`), Buffer.from([0xff, 0xfe, 0x80])]), 'x');
    const files = await hostDoesAll();
    expect(files).toHaveLength(8);
    expect(files).toEqual(
      expect.arrayContaining(['with "quotes"', 'with\nnewline', 'loop', 'outside', '\ufffd\ufffd\ufffd']),
    );
    expect(describeConflict({ feature: 'shop', branch: BRANCH, files }).join('|')).not.toContain('\nnewline');
  });

  test('alternates that lead elsewhere', async () => {
    const secret = await worker.git.run(['hash-object', '-w', '--stdin'], {
      input: 'secret of another branch',
    });
    await writeFile(
      join(worker.inner, 'objects/info/alternates'),
      `${worker.base.objects}\n${join(repository.root, '.git/objects')}\n`,
    );
    await worker.agent(['update-index', '--add', '--cacheinfo', `100644,${secret},stolen`]);
    const tree = await worker.agent(['write-tree']);
    const commit = await worker.agent(['commit-tree', '-p', 'HEAD', '-m', 'x', tree]);
    await worker.agent(['update-ref', 'HEAD', commit]);
    // A cell that cannot read the object can still name it; the pack then lacks it.
    const without: RunInCell = (argv, options) =>
      argv.includes('pack-objects')
        ? packOf(
            [commit, tree].map((id) => id),
            options,
          )
        : worker.run(argv, options);
    await expect(worker.place.takeCommits(without)).rejects.toThrow(/refused/);
    await expect(worker.git.run(['cat-file', '-e', commit])).rejects.toThrow(/failed/);
    expect((await worker.place.settle(without)).problem).toMatch(/refused/);
  });

  /** Only these objects. */
  const packOf: (ids: readonly string[], options: Parameters<RunInCell>[1]) => ReturnType<RunInCell> = (
    ids,
    options,
  ) => {
    const { onStdout } = options ?? {};
    return worker.run(['git', 'pack-objects', '--stdout', '-q'], {
      env: { GIT_DIR: worker.inner },
      input: Buffer.from(ids.map((id) => `${id}\n`).join('')),
      ...(onStdout === undefined ? {} : { onStdout }),
    });
  };
});

test('[FL-09] a target that people work on gets no program of a worker to run', async () => {
  await writeFiles(worker.worktree, { '.gitattributes': '*.bin merge=evil diff=evil\n', made: 'x' });
  await worker.place.commit(worker.run, 'work', { allowEmpty: false });
  await worker.place.takeCommits(worker.run);
  const merged = await mergeIntoTarget(worker.git, {
    target: 'main',
    branch: BRANCH,
    message: 'm',
    author: AUTHOR,
  });
  expect(merged.kind).toBe('merged');
  expect(existsSync(join(repository.root, 'made'))).toBe(true);
});
