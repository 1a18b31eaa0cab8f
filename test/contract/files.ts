import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { CellFiles } from '../../src/cells/cell-files.ts';
import type { Cell } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import { MiB, bash, finish, specOf, type Subject } from './cells.ts';

async function inCell(driver: Driver, check: (cell: Cell) => Promise<void>): Promise<void> {
  const cell = await driver.create(specOf(undefined));
  try {
    await check(cell);
  } finally {
    await cell.dispose();
  }
}

async function run(cell: Cell, script: string): Promise<string> {
  const exec = await cell.exec(bash(script));
  exec.closeStdin();
  const { stdout, stderr } = await finish(exec);
  return stdout + stderr;
}

const text = (content: string): Uint8Array => Buffer.from(content);

/** What a driver must do with the files of a cell. */
export const FILES = {
  'folders of the host can be read, also what is added later, and not changed': async ({
    driver,
  }: Subject) => {
    const folder = await mkdtemp(join(tmpdir(), 'hotcell-folder-'));
    await chmod(folder, 0o777);
    await writeFile(join(folder, 'early'), 'early');
    const cell = await driver.create({
      ...specOf(undefined),
      folders: [{ name: 'data', folder, at: '/data' }],
    });
    try {
      await writeFile(join(folder, 'late'), 'late');
      const { stdout } = await finish(
        await cell.exec(
          bash('cat "$AT/early" "$AT/late"; touch "$AT/mine" || echo " refused"', { AT: '{data}' }),
        ),
      );
      expect(stdout).toBe('earlylate refused\n');
      expect(await readdir(folder)).toEqual(['early', 'late']);
    } finally {
      await cell.dispose();
      await rm(folder, { recursive: true });
    }
  },
  'files are written, read and listed byte by byte': ({ driver }: Subject) =>
    inCell(driver, async (cell) => {
      const raw = Uint8Array.from({ length: 256 }, (_, index) => index);
      await new CellFiles(cell).write([
        { path: 'deep/er/raw.bin', content: raw },
        { path: 'run me.sh', content: text('echo ran'), mode: 0o755 },
        { path: '-n $(id)', content: text('odd') },
        { path: 'a\\..\\b\\n', content: text('one name') },
      ]);
      expect(await new CellFiles(cell).read('a\\..\\b\\n', 256)).toEqual(Uint8Array.from(text('one name')));
      expect(await new CellFiles(cell).read('deep/er/raw.bin', 256)).toEqual(raw);
      expect(await run(cell, "[ -x deep/er/raw.bin ] || './run me.sh'")).toBe('ran\n');
      expect(await new CellFiles(cell).list('.')).toEqual([
        { name: '-n $(id)', kind: 'file', sizeBytes: 3 },
        { name: 'a\\..\\b\\n', kind: 'file', sizeBytes: 8 },
        expect.objectContaining({ name: 'deep', kind: 'folder' }),
        { name: 'run me.sh', kind: 'file', sizeBytes: 8 },
      ]);
    }),
  'no path leads out of the workdir': ({ driver }: Subject) =>
    inCell(driver, async (cell) => {
      for (const path of ['/etc/passwd', '../x', 'a/../../x', '', 'a\0b']) {
        await expect(new CellFiles(cell).read(path, MiB)).rejects.toMatchObject({ code: 'FILE_REFUSED' });
        await expect(new CellFiles(cell).write([{ path, content: text('x') }])).rejects.toMatchObject({
          code: 'FILE_REFUSED',
        });
      }
    }),
  'a link leads nowhere that the programs of the cell could not go': ({ driver }: Subject) =>
    inCell(driver, async (cell) => {
      await run(cell, 'ln -s /etc/shadow secret; ln -s / root; mkfifo pipe; ln -s /proc/1/environ other');
      for (const path of ['secret', 'root/etc/shadow', 'root/root/.ssh/id_rsa', 'pipe', 'none']) {
        await expect(new CellFiles(cell).read(path, MiB)).rejects.toMatchObject({ code: 'FILE_REFUSED' });
      }
      await expect(
        new CellFiles(cell).write([{ path: 'root/etc/hotcell-was-here', content: text('x') }]),
      ).resolves.not.toThrow();
      // The link was replaced by a folder of the workdir: nothing went through it.
      const look =
        '[ -f root/etc/hotcell-was-here ] && echo here; [ -e /etc/hotcell-was-here ] && echo there; true';
      expect(await run(cell, look)).toBe('here\n');
    }),
  'what does not fit is refused': ({ driver }: Subject) =>
    inCell(driver, async (cell) => {
      await new CellFiles(cell).write([{ path: 'ten', content: text('0123456789') }]);
      await expect(new CellFiles(cell).read('ten', 9)).rejects.toMatchObject({ code: 'FILE_REFUSED' });
      expect(await new CellFiles(cell).read('ten', 10)).toEqual(Uint8Array.from(text('0123456789')));
    }),
} satisfies Record<string, (subject: Subject) => Promise<void>>;
