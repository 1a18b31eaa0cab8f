import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findRepositoryRoot } from './find-root.ts';

let root = '';
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'hotcell-root-')));
});
afterEach(() => rmSync(root, { recursive: true }));

test('[FL-15] from any folder of the repository, also from the worktree of a worker', () => {
  const deep = join(root, 'src/deep');
  const worktree = join(root, '.mahabharatha-worktrees/shop/worker-0/src');
  mkdirSync(join(root, '.git'));
  mkdirSync(deep, { recursive: true });
  mkdirSync(worktree, { recursive: true });
  writeFileSync(join(worktree, '../.git'), 'gitdir: elsewhere\n');
  for (const folder of [root, deep, worktree]) expect(findRepositoryRoot(folder)).toBe(root);
});

test('[FL-15] elsewhere it is an error', () => {
  expect(() => findRepositoryRoot(root)).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }));
});
