import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LinkedGit } from './linked-git.ts';
import {
  ScratchRepository,
  linkedWorker,
  writeFiles,
  type ScratchWorker,
} from './scratch-repository.double.ts';

const BRANCH = 'mahabharatha/shop/worker-0';

let repository: ScratchRepository;
let worker: ScratchWorker<LinkedGit>;
let before: Record<string, string>;

beforeEach(async () => {
  repository = await ScratchRepository.make();
  worker = await linkedWorker(repository);
  await worker.place.prepare();
  before = await repository.untouchables();
  expect(await worker.place.settle(worker.run)).toEqual({});
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

test('[FL-02] without a cell the worker commits on its branch of the repository', async () => {
  const from = await worker.place.head();
  expect(await commitAll()).toEqual({ moved: false });
  await worker.agent(['checkout', '--quiet', '--detach']);
  await writeFiles(worker.worktree, { one: '1' });
  await worker.agent(['add', 'one']);
  await worker.agent(['commit', '--quiet', '-m', 'by the agent']);
  await writeFiles(worker.worktree, { 'two\n': '2' });
  expect(await commitAll()).toEqual({ moved: true });
  const { commit, files } = await worker.place.takeCommits(worker.run);
  expect(files).toEqual(['one', 'two\n']);
  expect(await worker.place.head()).toBe(commit);
  expect(await repository.user(['log', '--format=%s', BRANCH])).toBe('work\nby the agent\nfirst');
  expect(await repository.user(['status', '--porcelain', '--branch'], worker.worktree)).toBe(`## ${BRANCH}`);
  expect(Buffer.from(await worker.place.diff(from, commit, 10_000)).toString()).toContain('+++ b/one');
});

test('[FL-02] programs of the user that rewrite files do so in both directions', async () => {
  await repository.user(['config', 'filter.shout.smudge', 'tr a-z A-Z']);
  await repository.user(['config', 'filter.shout.clean', 'tr A-Z a-z']);
  before = await repository.untouchables();
  await writeFiles(worker.worktree, { '.gitattributes': '*.txt filter=shout\n', 'c.txt': 'LOUD\n' });
  await commitAll();
  await worker.place.takeCommits(worker.run);
  expect(await repository.user(['show', `${BRANCH}:c.txt`])).toBe('loud');
});

test('[FL-07] a worktree that is made anew begins with what was accepted, whatever its agent has committed', async () => {
  const accepted = await worker.place.head();
  await writeFiles(worker.worktree, { committed: 'x', '.env': 'KEY=1' });
  await commitAll('never accepted');
  const lost = await worker.agent(['rev-parse', 'HEAD']);
  await worker.place.removeFiles();
  expect(existsSync(worker.worktree)).toBe(false);
  worker = await linkedWorker(repository);
  await worker.place.prepare();
  const { ref } = await worker.place.settle(worker.run);
  expect(await repository.user(['rev-parse', ref ?? ''])).toBe(lost);
  expect(await worker.place.head()).toBe(accepted);
  expect(await repository.user(['rev-parse', BRANCH])).toBe(accepted);
  expect(existsSync(join(worker.worktree, '.env'))).toBe(false);
});

test('[FL-12] what a lost worker left is kept, and the branch goes back to what was accepted', async () => {
  const accepted = await worker.place.head();
  await writeFiles(worker.worktree, { committed: 'x' });
  await commitAll('never accepted');
  const lost = await worker.agent(['rev-parse', 'HEAD']);
  await writeFiles(worker.worktree, { 'a.txt': 'half\n', '.env': 'KEY=1', extra: 'y' });
  await writeFile(join(repository.root, '.git/worktrees/worker-0/index.lock'), '');
  // Another orchestrator.
  worker = await linkedWorker(repository);
  await worker.place.prepare();
  const { ref, patch } = await worker.place.settle(worker.run);
  expect(await repository.user(['rev-parse', ref ?? ''])).toBe(lost);
  expect(Buffer.from(patch ?? []).toString()).toMatch(/\+half\n[^]*\+\+\+ b\/extra/);
  expect(await repository.user(['rev-parse', BRANCH])).toBe(accepted);
  expect(await worker.agent(['status', '--porcelain'])).toBe('');
  expect(await readFile(join(worker.worktree, '.env'), 'utf8')).toBe('KEY=1');
  expect(existsSync(join(worker.worktree, 'committed'))).toBe(false);
  expect(await worker.place.settle(worker.run)).toEqual({});
});

test('[FL-03] rewritten history and commits that are not accepted are refused', async () => {
  const accepted = await worker.place.head();
  await worker.agent(['commit', '--quiet', '--amend', '-m', 'rewritten']);
  await expect(worker.place.takeCommits(worker.run)).rejects.toThrow(/does not continue/);
  await worker.place.settle(worker.run);
  await writeFiles(worker.worktree, { foreign: 'x' });
  await commitAll();
  const refuse = (): never => {
    throw new Error('not owned');
  };
  await expect(worker.place.takeCommits(worker.run, refuse)).rejects.toThrow('not owned');
  expect(await worker.place.head()).toBe(accepted);
});

test('[FL-05] the next level begins at the merge', async () => {
  await writeFiles(worker.worktree, { mine: '1' });
  await commitAll();
  const { commit } = await worker.place.takeCommits(worker.run);
  await repository.user(['checkout', '--quiet', '--detach', commit]);
  await repository.write({ other: 'x' });
  const merge = await repository.save('merge');
  await repository.user(['checkout', '--quiet', 'main']);
  await worker.place.moveTo(worker.run, merge);
  expect(await worker.place.head()).toBe(merge);
  expect(await repository.user(['rev-parse', BRANCH])).toBe(merge);
  expect(existsSync(join(worker.worktree, 'other'))).toBe(true);
});

test('[FL-15] removed, nothing is left but the branch', async () => {
  await worker.place.remove();
  before = await repository.untouchables();
  expect(await repository.user(['for-each-ref', '--format=%(refname)', 'refs/mahabharatha'])).toBe('');
  expect(existsSync(join(repository.root, '.git/worktrees'))).toBe(false);
  expect(await repository.user(['branch', '--list', BRANCH])).toContain(BRANCH);
});
