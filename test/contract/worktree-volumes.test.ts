import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { SILENT_LOG } from '../../src/core/log.ts';
import { detachBelow, mountsBelow } from '../../src/drivers/volumes/mounts.ts';
import { whyNoVolumes } from '../../src/drivers/volumes/probe-volumes.ts';
import { WorktreeVolumes } from '../../src/drivers/volumes/worktree-volumes.ts';
import { fillWith } from '../support/own-disk.ts';
import { testThatNeeds } from '../support/needs.ts';

const MiB = 1024 ** 2;
const BYTES = 32 * MiB;
const test = testThatNeeds(whyNoVolumes());

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'hotcell-worktrees-')));
});
afterEach(async () => {
  await detachBelow([root]);
  rmSync(root, { recursive: true });
});

const at = (...parts: string[]): string => join(root, ...parts);
const images = (): string[] => (existsSync(at('images')) ? readdirSync(at('images')) : []);
/** Whoever is killed has nothing but mounts and files, so nobody has to be killed for it. */
const prepare = (): Promise<WorktreeVolumes> =>
  WorktreeVolumes.prepare({ directory: at('images'), worktrees: at('trees'), log: SILENT_LOG });

test('[FL-07] a worktree takes what it may, is seen where it belongs, and says when it is full', async () => {
  const volumes = await prepare();
  const room = await volumes.open('one', BYTES, at('trees/one'));
  const other = await volumes.open('other', BYTES, at('trees/other'));
  expect([room.fresh, await room.isFull()]).toEqual([true, false]);
  fillWith(join(room.tree, 'huge'));
  expect([await room.isFull(), await other.isFull()]).toEqual([true, false]);
  expect(readdirSync(at('trees/one'))).toEqual(['huge']);
  const lines = execFileSync('findmnt', ['-rno', 'FSTYPE,OPTIONS', at('trees/one')], { encoding: 'utf8' });
  expect(lines).toMatch(/^ext4 rw,nosuid,nodev/);
  await volumes.remove('one');
  const again = await volumes.open('one', BYTES, at('trees/one'));
  expect([again.fresh, await again.isFull(), readdirSync(again.tree)]).toEqual([true, false, []]);
  await volumes.close();
});

test('[FL-15] what a killed orchestrator has left is let go of, found again, and as large as is said now', async () => {
  const killed = await prepare();
  for (const key of ['one', 'other']) {
    const { tree } = await killed.open(key, BYTES, at('trees', key));
    writeFileSync(join(tree, 'kept'), key);
  }
  // It was laying one more.
  writeFileSync(at('images/.new-0123'), 'unfinished');
  expect(await WorktreeVolumes.areIn(at('images'))).toBe(true);
  const next = await prepare();
  expect((await mountsBelow([root])).toSorted()).toEqual([at('images'), at('trees')]);
  const room = await next.open('one', 2 * BYTES, at('trees/one'));
  expect([room.fresh, readFileSync(at('trees/one/kept'), 'utf8')]).toEqual([false, 'one']);
  const { blocks, bsize } = statfsSync(room.tree);
  expect(blocks * bsize).toBeGreaterThan(BYTES);
  await next.close();
  expect(await mountsBelow([root])).toEqual([]);
  expect(images().filter((name) => name.endsWith('.img'))).toHaveLength(2);
  expect(images().filter((name) => name.startsWith('.new-'))).toEqual([]);
});

test('[FL-11] with the last one everything goes, and closing twice does no harm', async () => {
  const volumes = await prepare();
  await volumes.open('one', BYTES, at('trees/one'));
  await volumes.remove('one');
  await volumes.close();
  await volumes.close();
  expect(await mountsBelow([root])).toEqual([]);
  expect(existsSync(at('images'))).toBe(false);
  expect(await WorktreeVolumes.areIn(at('images'))).toBe(false);
});
