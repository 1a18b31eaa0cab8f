import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LoopVolumes } from '../../src/drivers/volumes/loop-volumes.ts';
import { unmountAll } from '../support/engine-remains.ts';
import { fillWith, mountDisk } from '../support/own-disk.ts';
import { tmpdirOnTmpfs } from '../support/server.ts';

const MiB = 1024 * 1024;
const WEEK_MS = 7 * 24 * 3600_000;
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

let directory: string;
/** As a server has them that was started just now: it knows nothing but what is on disk. */
const open = (): LoopVolumes => new LoopVolumes({ directory, keepForMs: WEEK_MS, log: SILENT });
const images = (): string[] => readdirSync(directory).filter((name) => name.endsWith('.img'));

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-volumes-'));
  await open().prepare();
});
afterEach(async () => {
  await open().reclaim(new Set());
  await open().close();
  rmSync(directory, { recursive: true, force: true });
});

test('[RS-13] the smallest disk that can be asked for can be made, and holds most of what it says', async () => {
  const { folder } = await open().open('small', 8 * MiB);
  writeFileSync(join(folder, 'most'), Buffer.alloc(5 * MiB));
  expect(() => writeFileSync(join(folder, 'more'), Buffer.alloc(5 * MiB))).toThrow('ENOSPC');
  await open().release('small', 'nothing');
  expect(images()).toEqual([]);
});

test('[SC-02] what was made and never mounted is removed by the next server', async () => {
  const { folder } = await open().open('made', 16 * MiB);
  spawnSync('umount', [folder]);
  const [image = ''] = images();
  const record = join(directory, image.replace('.img', '.json'));
  writeFileSync(record, JSON.stringify({ owner: 1000, releasedAt: null, unused: true }));
  await open().reclaim(new Set());
  expect([images(), existsSync(record), existsSync(folder)]).toEqual([[], false, false]);
});

test('[SC-02] one with nothing but folders goes, one with a file stays', async () => {
  const [empty, used] = [await open().open('empty', 16 * MiB), await open().open('used', 16 * MiB)];
  mkdirSync(join(empty.folder, 'project'));
  mkdirSync(join(used.folder, 'project'));
  writeFileSync(join(used.folder, 'project/work'), 'of days');
  await open().reclaim(new Set());
  expect(images()).toHaveLength(1);
  const again = await open().open('used', 16 * MiB);
  expect(again).toMatchObject({ fresh: false, owner: used.owner });
  expect(readdirSync(join(again.folder, 'project'))).toEqual(['work']);
  await open().release('used', 'nothing');
});

test('[SC-02, RS-17] a deletion that got as far as letting go is finished by the next server', async () => {
  const { folder } = await open().open('deleted', 16 * MiB);
  mkdirSync(join(folder, 'project/node_modules'), { recursive: true });
  writeFileSync(join(folder, 'project/secret'), 'of the user');
  spawnSync('umount', [folder]);
  await open().release('deleted', 'dependencies');
  const again = await open().open('deleted', 16 * MiB);
  expect(readdirSync(join(again.folder, 'project'))).toEqual(['node_modules']);
  await open().release('deleted', 'nothing');
  expect(images()).toEqual([]);
});

test('[RS-13, RS-17, SC-02] one in use has all its room, one that is kept takes what it holds', async () => {
  const disk = join(directory, 'disk');
  mountDisk(disk, 40 * MiB);
  const volumes = new LoopVolumes({ directory: join(disk, 'volumes'), keepForMs: WEEK_MS, log: SILENT });
  try {
    const { folder } = await volumes.open('kept', 32 * MiB);
    const takes = (): number => 512 * statSync(`${folder}.img`).blocks;
    expect(takes()).toBeGreaterThanOrEqual(32 * MiB);
    mkdirSync(join(folder, 'p/node_modules'), { recursive: true });
    writeFileSync(join(folder, 'p/node_modules/dependency'), 'kept');
    writeFileSync(join(folder, 'p/large'), Buffer.alloc(20 * MiB, 1));
    await volumes.release('kept', 'dependencies');
    expect(takes()).toBeLessThan(10 * MiB);
    const refusal = { code: 'SESSIONS_UNAVAILABLE', hint: `Free space below ${disk}/volumes.` };
    fillWith(join(disk, 'ballast'));
    const before = takes();
    for (const key of ['kept', 'other'])
      await expect(volumes.open(key, 32 * MiB)).rejects.toMatchObject(refusal);
    expect(takes()).toBe(before);
    rmSync(join(disk, 'ballast'));
    await volumes.open('kept', 34 * MiB);
    expect(takes()).toBeGreaterThanOrEqual(34 * MiB);
    expect(readFileSync(join(folder, 'p/node_modules/dependency'), 'utf8')).toBe('kept');
    await volumes.release('kept', 'nothing');
    await volumes.close();
  } finally {
    await unmountAll(disk);
  }
});
