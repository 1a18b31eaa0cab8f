import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { HotcellError } from '../../src/core/errors.ts';
import { file, isRoot, withWorkspace } from './harness.ts';

describe('read', () => {
  test('[RS-11] gives text as text and everything else as base64', () =>
    withWorkspace(async ({ workspace }) => {
      const binary = Buffer.from([0xff, 0xfe, 0x00, 0x41]);
      await workspace.write([
        file('text', 'grüße\r\n', 0o600),
        file('binary', binary),
        file('nul', 'a\0b'),
        file('empty', ''),
      ]);
      expect(await workspace.read('text', 100)).toEqual({
        kind: 'file',
        path: 'text',
        content: 'grüße\r\n',
        encoding: 'utf8',
        size: 9,
        mode: 0o600,
      });
      expect(await workspace.read('binary', 4)).toMatchObject({
        content: '//4AQQ==',
        encoding: 'base64',
        size: 4,
      });
      expect(await workspace.read('nul', 100)).toMatchObject({ encoding: 'base64' });
      expect(await workspace.read('empty', 0)).toMatchObject({ content: '', encoding: 'utf8', size: 0 });
      await expect(workspace.read('binary', 3)).rejects.toMatchObject({ code: 'FILE_TOO_LARGE' });
      await expect(workspace.read('none', 3)).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
      await expect(workspace.read('none/none', 3)).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    }));

  test('[RS-11] lists a folder in order, with what each entry is', () =>
    withWorkspace(async (box) => {
      await box.workspace.write([file('b/two', '22'), file('b/one', '1', 0o755)]);
      await box.sh('mkdir b/folder; ln -s /etc/passwd b/link; mkfifo b/pipe; chmod 700 b/folder');
      const reply = await box.workspace.read('b', 0);
      expect(reply).toMatchObject({ kind: 'folder', path: 'b' });
      expect(reply.kind === 'folder' && reply.entries.map(({ name, kind }) => [name, kind])).toEqual([
        ['folder', 'folder'],
        ['link', 'link'],
        ['one', 'file'],
        ['pipe', 'other'],
        ['two', 'file'],
      ]);
      expect(reply.kind === 'folder' && reply.entries[2]).toEqual({
        name: 'one',
        kind: 'file',
        size: 1,
        mode: 0o755,
      });
      expect(await box.workspace.read('.', 0)).toMatchObject({
        path: '.',
        entries: [{ name: 'b', kind: 'folder' }],
      });
    }));

  test.each([
    '',
    '..',
    '../outside',
    '/etc',
    '/etc/passwd',
    'a/../..',
    'a\0',
    './x',
    'x/',
    'a/'.repeat(1000),
  ])('[RS-11] refuses the path %j', (path) =>
    withWorkspace(async ({ workspace }) => {
      await expect(workspace.read(path, 100)).rejects.toMatchObject({ code: 'FILE_REFUSED', field: 'path' });
    }),
  );

  test('[RS-11] never follows a link, nor waits for a FIFO', () =>
    withWorkspace(async (box) => {
      mkdirSync(box.outside, { mode: 0o777 });
      writeFileSync(join(box.outside, 'secret'), 'secret');
      await box.sh(
        'ln -s ../outside/secret file; ln -s ../outside folder; ln -s . self; mkfifo pipe; ' +
          'ln -s /proc/self/root up; ln -s /dev/zero zero; echo x >locked; chmod 000 locked; mkdir shut; echo y >shut/y; chmod 000 shut',
      );
      const paths = [
        'file',
        'folder',
        'folder/secret',
        'self/file',
        'self',
        'pipe',
        'up/etc/passwd',
        'zero',
        'locked',
        'shut/y',
        'shut',
      ];
      const codes = paths.map((path) =>
        box.workspace.read(path, 1000).then(
          () => `${path} is read`,
          (error: unknown) => (error instanceof HotcellError ? error.code : String(error)),
        ),
      );
      expect(new Set(await Promise.all(codes))).toEqual(new Set(['FILE_REFUSED']));
    }));

  test.skipIf(!isRoot)('[RS-11] a device is no file', () =>
    withWorkspace(async (box) => {
      await box.workspace.read('.', 1);
      expect(spawnSync('mknod', ['-m', '666', join(box.root, 'zero'), 'c', '1', '5']).status).toBe(0);
      await expect(box.workspace.read('zero', 1000)).rejects.toMatchObject({ code: 'FILE_REFUSED' });
      await expect(box.workspace.write([file('zero', 'x')])).rejects.toMatchObject({ code: 'FILE_REFUSED' });
    }),
  );

  test('[RS-11] a folder with too much in it is refused, not cut silently', () =>
    withWorkspace(async (box) => {
      await box.sh('mkdir many few; cd many; seq 10001 | xargs touch; cd ../few; seq 10000 | xargs touch');
      await expect(box.workspace.read('many', 1)).rejects.toMatchObject({ code: 'FILE_TOO_LARGE' });
      expect(await box.workspace.read('few', 1)).toMatchObject({ entries: { length: 10_000 } });
    }));

  test('[RS-11] names that are no UTF-8 do not break a list', () =>
    withWorkspace(async (box) => {
      await box.sh(`touch "$(printf 'bad\\377')" good`);
      const reply = await box.workspace.read('.', 1);
      expect(reply.kind === 'folder' && reply.entries.map(({ name }) => name)).toEqual(['bad\ufffd', 'good']);
    }));

  test('[RS-11] many reads at once each get their own answer', () =>
    withWorkspace(async ({ workspace }) => {
      const names = Array.from({ length: 50 }, (_, at) => `f${at}`);
      await workspace.write(names.map((name) => file(name, name.repeat(1000))));
      const replies = await Promise.all(names.map((name) => workspace.read(name, 100_000)));
      expect(replies.map((reply) => reply.kind === 'file' && reply.content)).toEqual(
        names.map((name) => name.repeat(1000)),
      );
    }));
});
