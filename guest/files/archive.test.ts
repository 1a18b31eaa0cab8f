import { spawnSync } from 'node:child_process';
import {
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { file, withWorkspace } from './harness.ts';

async function collect(archive: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of archive) parts.push(part);
  return Buffer.concat(parts);
}

/** Unpacks it with the real tar, which must have nothing to complain about. */
function unpack(archive: Buffer, use: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'hotcell-tar-'));
  try {
    const { status, stderr } = spawnSync('tar', ['-xf', '-', '-C', folder], {
      input: archive,
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([0, '']);
    use(folder);
  } finally {
    spawnSync('chmod', ['-R', 'u+rwX', folder]);
    rmSync(folder, { recursive: true, force: true });
  }
}

describe('archive', () => {
  test('[RS-11] is the whole workspace, links as links', () =>
    withWorkspace(async (box) => {
      const large = Buffer.alloc(3 * 1024 * 1024 + 17, 'abc');
      const long = `${'long-name/'.repeat(15)}${'x'.repeat(200)}`;
      await box.workspace.write([
        file('a/b.txt', 'b'),
        file('run', '#', 0o755),
        file('large', large),
        file(long, 'long'),
        file('empty', ''),
      ]);
      await box.sh(
        `ln -s a/b.txt link; ln -s /etc/passwd out; ln -s ${'y'.repeat(300)} far; mkdir none; mkfifo pipe; ` +
          `printf odd >"$(printf 'bad\\377')"; touch -d '2001-02-03 04:05:06 UTC' run; mkdir node_modules; echo n >node_modules/n`,
      );
      unpack(await collect(box.workspace.archive()), (folder) => {
        expect(readFileSync(join(folder, 'a/b.txt'), 'utf8')).toBe('b');
        expect(readFileSync(join(folder, 'large')).equals(large)).toBe(true);
        expect(readFileSync(join(folder, long), 'utf8')).toBe('long');
        expect(lstatSync(join(folder, 'run')).mode & 0o777).toBe(0o755);
        expect(lstatSync(join(folder, 'run')).mtime.toISOString()).toBe('2001-02-03T04:05:06.000Z');
        expect(readlinkSync(join(folder, 'link'))).toBe('a/b.txt');
        expect(readlinkSync(join(folder, 'out'))).toBe('/etc/passwd');
        expect(readlinkSync(join(folder, 'far'))).toBe('y'.repeat(300));
        expect(
          readdirSync(folder, { encoding: 'buffer' })
            .map((name) => name.toString('latin1'))
            .toSorted(),
        ).toEqual([
          'a',
          'bad\xff',
          'empty',
          'far',
          'large',
          'link',
          'long-name',
          'node_modules',
          'none',
          'out',
          'run',
        ]);
      });
    }));

  test('[RS-11] of nothing is an archive, too', () =>
    withWorkspace(async ({ workspace }) => {
      unpack(await collect(workspace.archive()), (folder) => expect(readdirSync(folder)).toEqual([]));
    }));

  test('[RS-11] stays well-formed when files grow, shrink and vanish meanwhile', () =>
    withWorkspace(async (box) => {
      const size = 4 * 1024 * 1024;
      await box.workspace.write([
        file('a-shrinks', Buffer.alloc(size, 's')),
        file('b-grows', Buffer.alloc(size, 'g')),
        file('c-goes', 'x'),
        file('d-replaced', 'before'),
        file('e-stays', 'stays'),
      ]);
      const parts: Uint8Array[] = [];
      let isChanged = false;
      for await (const part of box.workspace.archive()) {
        parts.push(part);
        if (isChanged) continue;
        isChanged = true;
        truncateSync(join(box.root, 'a-shrinks'), 600 * 1024);
        writeFileSync(join(box.root, 'b-grows'), Buffer.alloc(size + 1000, 'g'));
        rmSync(join(box.root, 'c-goes'));
        await box.sh('rm d-replaced; mkfifo d-replaced');
      }
      unpack(Buffer.concat(parts), (folder) => {
        expect(readdirSync(folder).toSorted()).toEqual(['a-shrinks', 'b-grows', 'e-stays']);
        const shrunk = readFileSync(join(folder, 'a-shrinks'));
        expect(shrunk.length).toBe(size);
        expect(shrunk[0]).toBe('s'.charCodeAt(0));
        expect(shrunk.at(-1)).toBe(0);
        expect(readFileSync(join(folder, 'e-stays'), 'utf8')).toBe('stays');
      });
    }));

  test('[RS-11] waits for its reader, lets others in between, and can be left', () =>
    withWorkspace(async (box) => {
      const size = 32 * 1024 * 1024;
      await box.workspace.write([file('large', Buffer.alloc(size)), file('small', 'x')]);
      const before = process.memoryUsage().arrayBuffers;
      let taken = 0;
      for await (const part of box.workspace.archive()) {
        taken += part.length;
        if (taken < 1024 * 1024) continue;
        expect(await box.workspace.read('small', 10)).toMatchObject({ content: 'x' });
        break;
      }
      // No more than a portion was asked for.
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(size / 2);
      // Left archives are closed: otherwise there would soon be no room for another.
      for (let round = 0; round < 20; round++) for await (const _ of box.workspace.archive()) break;
      expect((await collect(box.workspace.archive())).length).toBeGreaterThan(size);
      expect(box.guests).toHaveLength(1);
    }));

  test('[RS-11] says that it is broken off when its helper dies', () =>
    withWorkspace(async (box) => {
      await box.workspace.write([file('large', Buffer.alloc(4 * 1024 * 1024))]);
      const reading = async (): Promise<void> => {
        for await (const part of box.workspace.archive()) {
          if (part.length > 0) await box.guests[0]?.kill();
        }
      };
      await expect(reading()).rejects.toMatchObject({ code: 'CELL_LOST' });
      expect(await box.workspace.read('.', 1)).toMatchObject({ kind: 'folder' });
    }));

  test('[RS-11] holds trees that are deeper than descriptors reach', () =>
    withWorkspace(async (box) => {
      await box.sh(
        'i=0; while [ $i -lt 1500 ]; do mkdir d; cd -P d; i=$((i+1)); [ $i = 700 ] && echo deep >file; done; :',
      );
      const archive = await collect(box.workspace.archive());
      expect(archive.includes('deep\n')).toBe(true);
      await box.sh('rm -rf d');
    }));
});
