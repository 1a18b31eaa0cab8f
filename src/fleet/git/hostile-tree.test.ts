import { execFileSync } from 'node:child_process';
import { link, mkdir, mkdtemp, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HostGit } from './host-git.ts';
import { measureTree } from './hostile-tree.ts';
import { ScratchRepository } from './scratch-repository.double.ts';

const MiB = 1024 ** 2;

let repository: ScratchRepository;
let git: HostGit;
let folder: string;
beforeEach(async () => {
  repository = await ScratchRepository.make();
  git = await repository.open();
  folder = await mkdtemp(join(tmpdir(), 'hotcell-trees-'));
});
afterEach(async () => {
  // Gets to any depth.
  execFileSync('rm', ['-rf', folder]);
  await repository[Symbol.asyncDispose]();
});

/** Names and folders take a little, too. */
async function measured(name: string): Promise<number> {
  return Math.round(((await measureTree(git, join(folder, name))) ?? Number.NaN) / MiB);
}

test('[FL-07] what is on the disk counts, once, and nothing that links lead to', async () => {
  const content = Buffer.alloc(4 * MiB, 'x');
  await mkdir(join(folder, 'treasure'));
  await mkdir(join(folder, 'tree/more'), { recursive: true });
  for (const name of ['tree/a', 'tree/more/b', 'treasure/gold']) await writeFile(join(folder, name), content);
  await link(join(folder, 'tree/a'), join(folder, 'tree/more/a'));
  await symlink(join(folder, 'treasure'), join(folder, 'tree/link'));
  await writeFile(join(folder, 'tree/holes'), '');
  await truncate(join(folder, 'tree/holes'), 100 * MiB);
  expect(await measured('tree')).toBe(8);
  // As long as there is no private folder yet.
  expect(await measured('none')).toBe(0);
});

test('[FL-07] folders deeper than a path can be hide nothing, nor do names that look like a size', async () => {
  const odd = join(folder, 'odd\n9999999\tname');
  await mkdir(odd);
  // Longer than a path may be, so it is made from within.
  const dig =
    'cd "$0" && for i in $(seq 30); do mkdir "$1" && cd -P "$1"; done; head -c 8388608 /dev/zero >f';
  execFileSync('bash', ['-c', dig, odd, 'd'.repeat(200)]);
  expect(await measured('odd\n9999999\tname')).toBe(8);
});
