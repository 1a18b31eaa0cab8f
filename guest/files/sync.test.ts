import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { SyncReport, SyncWish } from '../../src/workspace/files.ts';
import { SyncIndex } from '../../src/workspace/synced-files.ts';
import { CLOCKS, file, withWorkspace, type TestWorkspace } from './harness.ts';

const sha256 = (content: string): string => createHash('sha256').update(content).digest('hex');

type Tree = Readonly<Record<string, string>>;

function manifest(tree: Tree, withContent: readonly string[] | 'all' = []): SyncWish {
  const files = Object.entries(tree).map(([path, content]) => ({
    path,
    hash: sha256(content),
    encoding: 'utf8' as const,
    ...(withContent === 'all' || withContent.includes(path) ? { content } : {}),
  }));
  return { files, delete: true };
}

/** As a client does it: the manifest first, then what is needed. */
async function sync(box: TestWorkspace, tree: Tree, index: SyncIndex): Promise<SyncReport> {
  const first = await box.workspace.sync(manifest(tree), index);
  return first.needed.length === 0 ? first : box.workspace.sync(manifest(tree, first.needed), index);
}

describe('sync', () => {
  test('[RS-09] only what has changed travels', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      const { workspace } = box;
      const tree = { 'a.txt': 'a', 'src/b.txt': 'b', 'src/deep/c.txt': 'c' };
      const first = await workspace.sync(manifest(tree), index);
      expect(first).toEqual({ synced: 0, skipped: 0, deleted: 0, needed: Object.keys(tree) });
      expect(await workspace.sync(manifest(tree, 'all'), index)).toEqual({
        synced: 3,
        skipped: 0,
        deleted: 0,
        needed: [],
      });
      expect(await workspace.sync(manifest(tree), index)).toEqual({
        synced: 0,
        skipped: 3,
        deleted: 0,
        needed: [],
      });
      const next = { ...tree, 'src/b.txt': 'B' };
      expect(await workspace.sync(manifest(next), index)).toMatchObject({
        skipped: 2,
        needed: ['src/b.txt'],
      });
      expect(await workspace.sync(manifest(next, 'all'), index)).toMatchObject({ synced: 1, skipped: 2 });
      expect(readFileSync(join(box.root, 'src/b.txt'), 'utf8')).toBe('B');
    }));

  test('[RS-09] removes what the client brought and no longer has, and nothing else', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      await box.workspace.write([file('up/loaded.txt', 'u')], index);
      await box.sh('mkdir made; echo m >made/by-command');
      await sync(box, { 'up/loaded.txt': 'u', 'x/y/one': '1', 'x/y/two': '2', 'made/ours': 'o' }, index);
      await box.sh('echo m >x/kept');
      const reply = await sync(box, { 'x/y/one': '1' }, index);
      expect(reply).toMatchObject({ synced: 0, skipped: 1, deleted: 3 });
      expect(box.tree()).toEqual(['made/', 'made/by-command', 'x/', 'x/kept', 'x/y/', 'x/y/one']);
      await sync(box, {}, index);
      expect(box.tree()).toEqual(['made/', 'made/by-command', 'x/', 'x/kept']);
      expect([...index.brought()]).toEqual([]);
    }));

  test('[RS-09] folders that commands made stay, also when they become empty', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      await box.sh('mkdir -p theirs');
      await sync(box, { 'theirs/ours/deep/file': 'x' }, index);
      await sync(box, {}, index);
      expect(box.tree()).toEqual(['theirs/']);
    }));

  test('[RS-09] removes nothing while content is missing, and nothing at all when not asked to', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      await sync(box, { old: 'o' }, index);
      expect(await box.workspace.sync(manifest({ new: 'n' }), index)).toMatchObject({
        deleted: 0,
        needed: ['new'],
      });
      expect(box.tree()).toEqual(['old']);
      expect(
        await box.workspace.sync({ ...manifest({ new: 'n' }, 'all'), delete: false }, index),
      ).toMatchObject({ deleted: 0 });
      expect(box.tree()).toEqual(['new', 'old']);
      expect(await sync(box, { new: 'n' }, index)).toMatchObject({ deleted: 1 });
      expect(box.tree()).toEqual(['new']);
    }));

  test('[RS-09] a file that commands made and the client has too becomes the client’s', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      await box.sh('printf same >both');
      expect(await box.workspace.sync(manifest({ both: 'same' }), index)).toMatchObject({
        skipped: 1,
        needed: [],
      });
      expect(await sync(box, {}, index)).toMatchObject({ deleted: 1 });
      expect(box.tree()).toEqual([]);
    }));

  test('[RS-09] a file may become a folder, and a folder a file', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      await sync(box, { thing: 'file', 'box/in': 'x' }, index);
      expect(await sync(box, { 'thing/now': 'folder', box: 'file' }, index)).toMatchObject({
        synced: 2,
        deleted: 2,
      });
      expect(box.tree()).toEqual(['box', 'thing/', 'thing/now']);
      expect(await sync(box, { thing: 'file', 'box/in': 'x' }, index)).toMatchObject({
        synced: 2,
        deleted: 2,
      });
      expect(box.tree()).toEqual(['box/', 'box/in', 'thing']);
    }));

  test('[RS-09] what a command has in the way is refused, and then nothing is changed', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      await sync(box, { keep: 'k', gone: 'g', 'box/in': 'x' }, index);
      await box.sh('echo mine >box/mine; ln -s /etc link');
      const before = box.tree();
      const refusal = { code: 'FILE_REFUSED' };
      await expect(
        box.workspace.sync(manifest({ keep: 'K', box: 'file' }, 'all'), index),
      ).rejects.toMatchObject(refusal);
      await expect(
        box.workspace.sync(manifest({ keep: 'K', 'link/x': 'x' }, 'all'), index),
      ).rejects.toMatchObject(refusal);
      await expect(box.workspace.sync(manifest({ keep: 'K', link: 'x' }), index)).rejects.toMatchObject(
        refusal,
      );
      expect(box.tree()).toEqual(before);
      expect(readFileSync(join(box.root, 'keep'), 'utf8')).toBe('k');
      expect(box.leftovers()).toEqual([]);
      expect(await sync(box, { keep: 'k', gone: 'g', 'box/in': 'x' }, index)).toMatchObject({
        skipped: 3,
        deleted: 0,
      });
    }));

  test.each(CLOCKS)(
    '[RS-09] notices every change that a command makes, however quick and well hidden: %s',
    (_, options) =>
      withWorkspace(async (box) => {
        const index = SyncIndex.empty();
        const tree = { one: 'aaaa', two: 'bbbb' };
        for (let round = 0; round < 40; round++) {
          await sync(box, tree, index);
          const path = join(box.root, 'one');
          const { atime, mtime } = statSync(path);
          // At once, with the same length, and every other time with the old time.
          writeFileSync(path, String(round).padStart(4, '0'));
          if (round % 2 === 0) utimesSync(path, atime, mtime);
          expect(await box.workspace.sync(manifest(tree), index)).toMatchObject({
            skipped: 1,
            needed: ['one'],
          });
        }
      }, options),
  );

  test.each(CLOCKS)('[RS-09] a file that was just read may be changed right after: %s', (_, options) =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      await box.sh('touch one');
      for (let round = 0; round < 40; round++) {
        writeFileSync(join(box.root, 'one'), 'same');
        expect(await box.workspace.sync(manifest({ one: 'same' }), index)).toMatchObject({ skipped: 1 });
        writeFileSync(join(box.root, 'one'), 'else');
        expect(await box.workspace.sync(manifest({ one: 'same' }), index)).toMatchObject({ needed: ['one'] });
      }
    }, options),
  );

  test('[RS-09] a file that has not changed for a while is not read again', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      await sync(box, { big: 'x'.repeat(100), small: 'y' }, index);
      const isOld = (): boolean => Date.now() - statSync(join(box.root, 'small')).ctimeMs > 250;
      while (!isOld()) await new Promise((resolve) => setTimeout(resolve, 10));
      await sync(box, { big: 'x'.repeat(100), small: 'y' }, index);
      // What the index believes is now proven by telling it something else.
      const text = index.toText().replace(sha256('y'), sha256('z'));
      const fooled = SyncIndex.read(text) ?? SyncIndex.empty();
      expect(await box.workspace.sync(manifest({ small: 'z' }), fooled)).toMatchObject({
        skipped: 1,
        needed: [],
      });
    }));

  test('[RS-09] a mode is part of a file, if the client gives one', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      const withMode = (mode: number | string, content?: string): SyncWish => ({
        delete: true,
        files: [
          {
            path: 'run',
            hash: sha256('x'),
            encoding: 'utf8',
            mode,
            ...(content === undefined ? {} : { content }),
          },
        ],
      });
      await box.workspace.sync(withMode('755', 'x'), index);
      expect(box.modeOf('run')).toBe(0o755);
      expect(await box.workspace.sync(withMode(0o755), index)).toMatchObject({ skipped: 1 });
      expect(await box.workspace.sync(withMode(0o644), index)).toMatchObject({ needed: ['run'] });
      expect(await box.workspace.sync(withMode('0644', 'x'), index)).toMatchObject({ synced: 1 });
      expect(box.modeOf('run')).toBe(0o644);
      await box.sh('chmod 700 run');
      expect(await sync(box, { run: 'y' }, index)).toMatchObject({ synced: 1 });
      expect(box.modeOf('run')).toBe(0o700);
    }));

  test('[RS-09] refuses what makes no sense, with the field', () =>
    withWorkspace(async ({ workspace, base }) => {
      const index = SyncIndex.empty();
      const wrongHash = manifest({ a: 'a' }, 'all');
      const files = wrongHash.files.map((entry) => ({ ...entry, hash: sha256('b') }));
      await expect(workspace.sync({ ...wrongHash, files }, index)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        field: 'files[0].hash',
      });
      const [one] = manifest({ a: 'a' }).files;
      const twice = { delete: true, files: [one, one].filter((entry) => entry !== undefined) };
      await expect(workspace.sync(twice, index)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        field: 'files[1].path',
      });
      await expect(workspace.sync(manifest({ 'a/b': 'x', a: 'y' }), index)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        field: 'files[0].path',
      });
      for (const path of ['../x', '/x', 'a/../../x', 'a\0b', '']) {
        await expect(workspace.sync(manifest({ [path]: 'x' }, 'all'), index)).rejects.toMatchObject({
          code: 'FILE_REFUSED',
        });
      }
      expect(readdirSync(base)).toEqual([]);
    }));

  test('[RS-09] base64 carries any bytes', () =>
    withWorkspace(async (box) => {
      const bytes = Buffer.from([0, 1, 254, 255]);
      const files = [{ path: 'raw', content: bytes.toString('base64'), encoding: 'base64' as const }];
      await box.workspace.sync({ delete: true, files }, SyncIndex.empty());
      expect(readFileSync(join(box.root, 'raw'))).toEqual(bytes);
    }));

  test('[RS-09] the index survives being written down', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      await sync(box, { 'ä/ö': '1', 'b/c': '2' }, index);
      const again = SyncIndex.read(index.toText()) ?? SyncIndex.empty();
      expect(again.toText()).toBe(index.toText());
      expect(await sync(box, { 'ä/ö': '1' }, again)).toMatchObject({ skipped: 1, deleted: 1 });
      expect(box.tree()).toEqual(['ä/', 'ä/ö']);
    }));

  test('[RS-09] a sync through a link that a command has laid touches nothing outside', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      await sync(box, { 'dir/file': 'x', other: 'y' }, index);
      mkdirSync(box.outside, { mode: 0o777 });
      writeFileSync(join(box.outside, 'file'), 'x', { mode: 0o666 });
      await box.sh('rm -r dir; ln -s ../outside dir');
      // Neither taken for the same file nor removed as the client's.
      await expect(box.workspace.sync(manifest({ 'dir/file': 'x' }), index)).rejects.toMatchObject({
        code: 'FILE_REFUSED',
      });
      expect(await sync(box, { other: 'y' }, index)).toMatchObject({ deleted: 0, skipped: 1 });
      expect(readFileSync(join(box.outside, 'file'), 'utf8')).toBe('x');
    }));

  test('[RS-09] 10,000 unchanged files cost one round trip', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      const tree = Object.fromEntries(
        Array.from({ length: 10_000 }, (_, at) => [
          `src/${Math.floor(at / 100)}/module-${at}.ts`,
          `export const n = ${at};`,
        ]),
      );
      expect(await box.workspace.sync(manifest(tree, 'all'), index)).toMatchObject({ synced: 10_000 });
      const reply = await box.workspace.sync(manifest(tree), index);
      expect(reply).toEqual({ synced: 0, skipped: 10_000, deleted: 0, needed: [] });
    }));
});
