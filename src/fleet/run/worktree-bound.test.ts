import { expect, test } from 'vitest';
import { describeBound, planBound, type BoundFacts } from './worktree-bound.ts';

const GiB = 1024 ** 3;
const FIT: BoundFacts = {
  hasVolumes: false,
  hasFolders: false,
  problem: undefined,
  isPlain: false,
  inMemory: false,
  freeBytes: 12 * GiB,
  neededBytes: 11 * GiB,
};
const config = { resources: { worktree_disk: 10 * GiB } } as Parameters<typeof describeBound>[0];

test('[FL-07] the kernel bounds worktrees where it can, and has room for all of them', () => {
  expect(planBound(FIT)).toEqual({ kind: 'kernel' });
  expect(describeBound(config, planBound(FIT))).toBe('worktrees up to 10.7 GB, kernel');
});

test.each([
  ['plain processes', { isPlain: true }],
  ['only root may mount', { problem: 'only root may mount' }],
  ['plain folders since the last run', { hasFolders: true }],
  ['the repository is in memory', { inMemory: true }],
  ['no room on the disk for 11.8 GB, only 12.9 GB', { freeBytes: 12 * GiB - 1 }],
])('[FL-07] elsewhere they are watched, and it is said why: %s', (why, facts) => {
  const bound = planBound({ ...FIT, ...facts });
  expect(bound).toEqual({ kind: 'watched', why });
  expect(describeBound(config, bound)).toBe(`worktrees up to 10.7 GB, watched (${why})`);
});

test('[FL-07, FL-15] what an earlier run has left on file systems is found again, or nothing begins', () => {
  const left = { ...FIT, hasVolumes: true };
  expect(planBound({ ...left, isPlain: true, hasFolders: true, freeBytes: 0 })).toEqual({ kind: 'kernel' });
  expect(() => planBound({ ...left, problem: 'only root may mount' })).toThrow(
    expect.objectContaining({ code: 'CELL_START_FAILED', message: expect.stringContaining('only root') }),
  );
});
