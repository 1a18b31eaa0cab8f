import { existsSync } from 'node:fs';
import { readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { HostGit } from './host-git.ts';
import { describeConflict } from './describe-conflict.ts';
import { mergeInto, mergeIntoTarget, type Merged } from './merge-branches.ts';
import { isAncestor } from './refs.ts';
import { runProgram } from './run-program.ts';
import { ScratchRepository } from './scratch-repository.double.ts';

const AUTHOR = { name: 'Mahabharatha', email: 'fleet@mahabharatha.invalid' };
const STAGING = 'mahabharatha/shop/staging';
const ONE = 'mahabharatha/shop/worker-0';
const TWO = 'mahabharatha/shop/worker-1';

let repository: ScratchRepository;
let git: HostGit;
let before: Record<string, string>;

beforeEach(async () => {
  repository = await ScratchRepository.make();
  git = await repository.open();
  await repository.user(['branch', STAGING]);
  await repository.user(['config', '--unset', 'user.name']);
  await repository.user(['config', '--unset', 'user.email']);
  await repository.user(['config', 'merge.ff', 'only']);
  await repository.user(['config', 'commit.gpgSign', 'true']);
  before = await repository.untouchables();
});

afterEach(async () => {
  try {
    expect(await repository.untouchables()).toEqual(before);
    expect(await repository.user(['status', '--porcelain'])).toBe('');
    expect(existsSync(join(repository.root, '.git/MERGE_HEAD'))).toBe(false);
    await repository.user(['fsck', '--strict', '--no-dangling']);
  } finally {
    await repository[Symbol.asyncDispose]();
  }
});

/** A branch from main with these files changed. */
async function branch(name: string, files: Readonly<Record<string, string>>): Promise<void> {
  const identity = ['-c', 'user.name=x', '-c', 'user.email=x', '-c', 'commit.gpgSign=false'];
  await repository.user(['checkout', '--quiet', '-b', name, 'main']);
  await repository.write(files);
  await repository.user(['add', '-A']);
  await repository.user([...identity, 'commit', '--quiet', '-m', name]);
  await repository.user(['checkout', '--quiet', 'main']);
}

const merge = (source: string, ref = STAGING): Promise<Merged> =>
  mergeInto(git, { ref, branch: source, message: `Merge ${source}\n`, author: AUTHOR });
const mergeTarget = (source: string): Promise<Merged> =>
  mergeIntoTarget(git, { target: 'main', branch: source, message: 'Merge it\n', author: AUTHOR });

describe('[FL-05] merging', () => {
  test('goes branch by branch, without a working tree, and again without effect', async () => {
    await branch(ONE, { one: '1' });
    await branch(TWO, { two: '2' });
    const merged = () => Promise.all([ONE, TWO].map((name) => isAncestor(git, name, STAGING)));
    expect(await merged()).toEqual([false, false]);
    const first = await merge(ONE, `refs/heads/${STAGING}`);
    expect(first.kind).toBe('merged');
    expect(await merged()).toEqual([true, false]);
    const second = await merge(TWO);
    expect(await repository.user(['rev-parse', STAGING])).toBe(second.kind === 'merged' ? second.commit : '');
    expect(await merge(ONE)).toEqual({ ...second, kind: 'up-to-date' });
    expect(await repository.user(['ls-tree', '-r', '--name-only', STAGING])).toMatch(/one\nsrc\/b.txt\ntwo/);
    expect(await repository.user(['log', '-1', '--format=%an %ce %P%n%B', STAGING])).toBe(
      `Mahabharatha fleet@mahabharatha.invalid ${first.kind === 'merged' ? first.commit : ''} ${await repository.user(['rev-parse', TWO])}\nMerge ${TWO}\n`,
    );
    expect(await isAncestor(git, ONE, STAGING)).toBe(true);
    expect(await isAncestor(git, STAGING, ONE)).toBe(false);
    expect(await isAncestor(git, 'no/such', STAGING)).toBe(false);
  });

  test('a conflict changes nothing, names the files and says what to do, which then helps', async () => {
    await branch(ONE, { 'a.txt': 'mine\n', 'odd\n\u001b[31mname': '1' });
    await branch(TWO, { 'a.txt': 'yours\n', 'odd\n\u001b[31mname': '2', fine: 'x' });
    await merge(ONE);
    const at = await repository.user(['rev-parse', STAGING]);
    const conflict = await merge(TWO);
    if (conflict.kind !== 'conflict') throw new Error(conflict.kind);
    expect(conflict.files.toSorted()).toEqual(['a.txt', 'odd\n\u001b[31mname']);
    expect(conflict.message).toContain('CONFLICT (content): Merge conflict in a.txt');
    expect(await repository.user(['rev-parse', STAGING])).toBe(at);
    const lines = describeConflict({ feature: 'shop', branch: TWO, files: conflict.files });
    expect(lines.every((line) => /^[ -~]*$/.test(line))).toBe(true);
    expect(lines.at(-1)).toContain('hotcell fleet resume');
    // A person follows it to the letter.
    const commands = lines.filter((line) => /^ {2}(git|cd) /.test(line)).map((line) => line.trim());
    const mend = commands.findIndex((line) => line.startsWith('git add'));
    const script = [...commands.slice(0, mend), 'echo both > a.txt', ...commands.slice(mend)].join('\n');
    const { code, stderr } = await runProgram(['bash', '-c', script], {
      cwd: repository.root,
      env: {
        ...repository.environment,
        GIT_CONFIG_COUNT: '4',
        GIT_CONFIG_KEY_0: 'user.name',
        GIT_CONFIG_VALUE_0: 'P',
        GIT_CONFIG_KEY_1: 'user.email',
        GIT_CONFIG_VALUE_1: 'p@example.org',
        GIT_CONFIG_KEY_2: 'commit.gpgSign',
        GIT_CONFIG_VALUE_2: 'false',
        GIT_CONFIG_KEY_3: 'merge.ff',
        GIT_CONFIG_VALUE_3: 'true',
      },
      limitBytes: 100_000,
      timeoutMs: 60_000,
    });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(await merge(TWO)).toMatchObject({ kind: 'up-to-date' });
    expect(await repository.user(['show', `${STAGING}:a.txt`])).toBe('both');
  });

  test('one side removed what the other changed', async () => {
    await branch(ONE, { 'a.txt': 'changed\n' });
    await repository.user(['checkout', '--quiet', '-b', TWO, 'main']);
    await repository.user(['rm', '--quiet', 'a.txt']);
    await repository.user([
      '-c',
      'user.name=x',
      '-c',
      'user.email=x',
      '-c',
      'commit.gpgSign=false',
      'commit',
      '--quiet',
      '-m',
      'rm',
    ]);
    await repository.user(['checkout', '--quiet', 'main']);
    await merge(ONE);
    expect(await merge(TWO)).toMatchObject({ kind: 'conflict', files: ['a.txt'] });
  });

  test('a branch that somebody has checked out is not moved away under them', async () => {
    await branch(ONE, { one: '1' });
    const look = join(repository.folder, 'look');
    await repository.user(['worktree', 'add', '--quiet', look, STAGING]);
    await expect(merge(ONE)).rejects.toMatchObject({ code: 'FLEET_GIT', hint: /switch --detach/ });
    await repository.user(['worktree', 'remove', look]);
    expect(await merge(ONE)).toMatchObject({ kind: 'merged' });
  });

  test('what is not there is named', async () => {
    await expect(merge('no/such')).rejects.toThrow(/no commit or branch no\/such/);
  });
});

describe('[FL-15] the target', () => {
  test('that is checked out gets files and commit together', async () => {
    await branch(ONE, { one: '1', 'a.txt': 'new\n' });
    await repository.write({ 'untracked.txt': 'stays' });
    expect(await mergeTarget(ONE)).toMatchObject({ kind: 'merged' });
    expect(await readFile(join(repository.root, 'a.txt'), 'utf8')).toBe('new\n');
    expect(await repository.user(['log', '-1', '--format=%s %an', 'main'])).toBe('Merge it Mahabharatha');
    expect(await repository.user(['status', '--porcelain'])).toBe('?? untracked.txt');
    await repository.user(['clean', '-fdq']);
    expect(await mergeTarget(ONE)).toMatchObject({ kind: 'up-to-date' });
  });

  test('that is checked out nowhere is moved', async () => {
    await branch(ONE, { one: '1' });
    await repository.user(['checkout', '--quiet', '--detach']);
    before = await repository.untouchables();
    expect(await mergeTarget(ONE)).toMatchObject({ kind: 'merged' });
    expect(await repository.user(['ls-tree', '--name-only', 'main'])).toContain('one');
    expect(existsSync(join(repository.root, 'one'))).toBe(false);
  });

  test('with a conflict stays as it is', async () => {
    await branch(ONE, { 'a.txt': 'worker\n' });
    await branch('other', { 'a.txt': 'other\n' });
    expect(await mergeTarget('other')).toMatchObject({ kind: 'merged' });
    const at = await repository.user(['rev-parse', 'main']);
    // Found before anything is touched, whatever else is in the way.
    await repository.write({ 'a.txt': 'user\n' });
    expect(await mergeTarget(ONE)).toMatchObject({ kind: 'conflict', files: ['a.txt'] });
    expect(await readFile(join(repository.root, 'a.txt'), 'utf8')).toBe('user\n');
    await repository.user(['checkout', '--quiet', 'a.txt']);
    expect(await repository.user(['rev-parse', 'main'])).toBe(at);
  });

  test('keeps what the user has changed elsewhere, staged or not', async () => {
    await branch(ONE, { 'a.txt': 'worker\n', 'src/c.txt': 'new\n' });
    await repository.write({ 'src/b.txt': 'of the user\n', 'src/staged.txt': '1\n', '.env': 'KEY=1\n' });
    await repository.user(['add', 'src/staged.txt']);
    await repository.write({ 'src/staged.txt': '2\n', 'src/untracked.txt': '3\n' });
    const changes = await repository.user(['status', '--porcelain']);
    expect(await mergeTarget(ONE)).toMatchObject({ kind: 'merged' });
    expect(await repository.user(['status', '--porcelain'])).toBe(changes);
    const texts = ['a.txt', 'src/b.txt', 'src/c.txt', 'src/staged.txt', 'src/untracked.txt', '.env'];
    expect(await Promise.all(texts.map((name) => readFile(join(repository.root, name), 'utf8')))).toEqual([
      'worker\n',
      'of the user\n',
      'new\n',
      '2\n',
      '3\n',
      'KEY=1\n',
    ]);
    expect(await repository.user(['show', ':src/staged.txt'])).toBe('1');
    await repository.user(['reset', '--quiet', '--hard']);
    await repository.user(['clean', '-fdq']);
  });

  test.each([
    ['changed', 'a.txt', () => repository.write({ 'a.txt': 'user\n' })],
    ['removed', 'a.txt', () => rm(join(repository.root, 'a.txt'))],
    ['removed from the index alone', 'a.txt', () => repository.user(['rm', '--quiet', '--cached', 'a.txt'])],
    [
      'staged and changed back',
      'a.txt',
      async () => {
        await repository.write({ 'a.txt': 'user\n' });
        await repository.user(['add', 'a.txt']);
        await repository.write({ 'a.txt': 'one\n' });
      },
    ],
    ['untracked', 'new/one', () => repository.write({ 'new/one': 'in the way' })],
    ['where a folder is to be', 'new', () => repository.write({ new: 'in the way' })],
    ['ignored', '.env', () => repository.write({ '.env': 'KEY=1\n' })],
    ['in a folder where a file is to be', 'file/deep/x', () => repository.write({ 'file/deep/x': '1' })],
    ['ignored in such a folder', 'file/.env', () => repository.write({ 'file/.env': '1' })],
    [
      'a link that leads elsewhere',
      'new',
      () => symlink(repository.home, join(repository.root, 'new')) as Promise<unknown>,
    ],
  ])('a file that is %s is named and stays, and so does all else', async (_, name, prepare) => {
    const changes = { 'a.txt': 'worker\n', 'new/one': '1', file: '1' };
    await branch(ONE, changes);
    await repository.user(['checkout', '--quiet', ONE]);
    await repository.write({ '.env': 'of the worker\n' });
    await repository.user(['add', '--force', '.env']);
    const identity = ['-c', 'user.name=x', '-c', 'user.email=x', '-c', 'commit.gpgSign=false'];
    await repository.user([...identity, 'commit', '--quiet', '-m', 'ignored']);
    await repository.user(['checkout', '--quiet', 'main']);
    await prepare();
    const view = async (): Promise<unknown> => [
      await repository.user(['rev-parse', 'main']),
      await repository.user(['status', '--porcelain', '--ignored', '--untracked-files=all']),
      await repository.user(['ls-files', '--stage']),
      await readFile(join(repository.root, name), 'latin1').catch(
        (error: NodeJS.ErrnoException) => error.code,
      ),
    ];
    const at = await view();
    await expect(mergeTarget(ONE)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: `main is checked out in ${repository.root}, where the merge would change files of yours: ${name}`,
      hint: /stash or move/,
    });
    expect(await view()).toEqual(at);
    await repository.user(['reset', '--quiet', '--hard']);
    await repository.user(['clean', '-fdqx', '-e', '.mahabharatha*']);
    expect(await mergeTarget(ONE)).toMatchObject({ kind: 'merged' });
  });

  test('in the middle of a merge of the user stays as it is', async () => {
    await branch(ONE, { one: '1' });
    await branch('other', { other: '1' });
    const merging = ['-c', 'merge.ff=true', '-c', 'user.name=x', '-c', 'user.email=x', 'merge'];
    await repository.user([...merging, '--quiet', '--no-commit', '--no-ff', 'other']);
    await expect(mergeTarget(ONE)).rejects.toMatchObject({ code: 'INVALID_REQUEST', hint: /--abort/ });
    await repository.user(['merge', '--abort']);
    expect(await mergeTarget(ONE)).toMatchObject({ kind: 'merged' });
  });
});
