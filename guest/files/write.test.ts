import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SyncIndex } from '../../src/workspace/synced-files.ts';
import { file, isRoot, withWorkspace } from './harness.ts';

const refused = (message: RegExp | string = '') => ({
  code: 'FILE_REFUSED',
  message: expect.stringMatching(message) as string,
});

/** Forms that lead out of a folder, or try to. */
const ESCAPES = [
  '',
  '.',
  '..',
  '/',
  '/etc/passwd',
  '../outside/secret',
  'a/../../outside/secret',
  'a/..',
  'a/./b',
  'a//b',
  'a/',
  './a',
  'a\0b',
  'x'.repeat(256),
  'a/'.repeat(1000) + 'b',
  'x'.repeat(5000),
  '\ud800',
];

describe('write', () => {
  test('[RS-08] makes files with their folders and modes, and replaces them', () =>
    withWorkspace(async (box) => {
      const { workspace, root } = box;
      await workspace.write([file('a/b/c.txt', 'one'), file('run.sh', '#', 0o755), file('empty', '')]);
      expect(box.tree()).toEqual(['a/', 'a/b/', 'a/b/c.txt', 'empty', 'run.sh']);
      expect([box.modeOf('a/b/c.txt'), box.modeOf('run.sh'), box.modeOf('a')]).toEqual([0o644, 0o755, 0o755]);
      await workspace.write([file('a/b/c.txt', Buffer.from([0, 255, 10]), 0o4600)]);
      expect(readFileSync(join(root, 'a/b/c.txt'))).toEqual(Buffer.from([0, 255, 10]));
      expect(box.modeOf('a/b/c.txt')).toBe(0o600);
      expect(box.leftovers()).toEqual([]);
    }));

  test('[RS-08] carries large and many files', () =>
    withWorkspace(async ({ workspace, root }) => {
      const large = Buffer.alloc(20 * 1024 * 1024, 'abcdefg');
      const many = Array.from({ length: 3000 }, (_, at) => file(`many/${at % 30}/${at}`, String(at)));
      await workspace.write([file('large', large), ...many, file('last', 'end')]);
      expect(readFileSync(join(root, 'large')).equals(large)).toBe(true);
      for (const { path, content } of many) expect(readFileSync(join(root, path))).toEqual(content);
      expect(readFileSync(join(root, 'last'), 'utf8')).toBe('end');
    }));

  test.each(ESCAPES.map((path) => [path.slice(0, 40), path]))(
    '[RS-08] refuses the path %j, and writes nothing',
    (_, path) =>
      withWorkspace(async (box) => {
        await box.workspace.read('.', 0);
        await expect(box.workspace.write([file('fine', 'x'), file(path, 'x')])).rejects.toMatchObject({
          code: 'FILE_REFUSED',
          field: 'files[1].path',
        });
        expect(box.tree()).toEqual([]);
        expect(readdirSync(box.base)).toEqual(['project']);
      }),
  );

  test('[RS-08] takes odd names as they are', () =>
    withWorkspace(async ({ workspace, root }) => {
      const names = [
        '123',
        '-rf',
        ' x ',
        'ä/ö',
        '...',
        '.hidden',
        'new\nline',
        '0',
        '1e3/7',
        '~',
        '$HOME',
        '*',
      ];
      await workspace.write(names.map((name) => file(name, name)));
      for (const name of names) expect(readFileSync(join(root, name), 'utf8')).toBe(name);
      for (const name of names) expect(await workspace.read(name, 100)).toMatchObject({ content: name });
    }));

  test('[RS-08] goes as deep as a path can say', () =>
    withWorkspace(async ({ workspace }) => {
      const deep = `${'d/'.repeat(511)}f`;
      await workspace.write([file(deep, 'deep'), file(`${'d/'.repeat(100)}g`, 'less deep')]);
      expect(await workspace.read(deep, 10)).toMatchObject({ content: 'deep' });
      expect((await workspace.snapshot()).files.has(deep)).toBe(true);
    }));

  test.each([
    ['a folder', 'folder', /folder is a folder/],
    ['a link to a file', 'link', /link is a link/],
    ['a link that leads nowhere', 'dangling', /dangling is a link/],
    ['a FIFO', 'fifo', /fifo is neither/],
    ['a link on the way', 'linked/new', /linked\/new cannot be reached/],
    ['a link far up on the way', 'linked/a/b/new', /cannot be reached/],
    ['a file on the way', 'other/new', /other\/new cannot be reached/],
  ])('[RS-08] %s in the way is refused, and nothing is written', (_, path, message) =>
    withWorkspace(async (box) => {
      mkdirSync(box.outside, { mode: 0o777 });
      writeFileSync(join(box.outside, 'secret'), 'secret', { mode: 0o666 });
      await box.sh(
        'mkdir folder; ln -s ../outside/secret link; ln -s ../outside/none dangling; mkfifo fifo; ' +
          'ln -s ../outside linked; echo old >plain; echo old >other',
      );
      const before = box.tree();
      await expect(
        box.workspace.write([file('plain', 'new'), file('x/y', 'new'), file(path, 'new')]),
      ).rejects.toMatchObject(refused(message));
      expect(box.tree()).toEqual(before);
      expect(readFileSync(join(box.root, 'plain'), 'utf8')).toBe('old\n');
      expect(readdirSync(box.outside)).toEqual(['secret']);
      expect(readFileSync(join(box.outside, 'secret'), 'utf8')).toBe('secret');
      expect(box.leftovers()).toEqual([]);
    }),
  );

  test('[RS-08] the same path twice, or as a folder, is refused with its field', () =>
    withWorkspace(async ({ workspace }) => {
      const field = 'files[1].path';
      const bad = { code: 'INVALID_REQUEST', field };
      await expect(workspace.write([file('a', '1'), file('a', '2')])).rejects.toMatchObject(bad);
      await expect(workspace.write([file('a', '1'), file('a/b/c', '2')])).rejects.toMatchObject(bad);
    }));

  test('[RS-08] a workspace that has become a link is refused, and one that is gone is made again', () =>
    withWorkspace(async (box) => {
      mkdirSync(box.outside, { mode: 0o777 });
      await box.sh('cd .. && mv project moved && ln -s outside project');
      await expect(box.workspace.write([file('x', 'x')])).rejects.toMatchObject(refused());
      await expect(box.workspace.read('.', 1)).rejects.toMatchObject(refused());
      await expect(box.workspace.snapshot()).rejects.toMatchObject(refused());
      expect(readdirSync(box.outside)).toEqual([]);
      rmSync(box.root);
      await box.workspace.write([file('x', 'x')]);
      expect(box.tree()).toEqual(['x']);
    }));

  test('[RS-08] a failure at the last file undoes all the others', () =>
    withWorkspace(async (box) => {
      await box.workspace.write([file('kept', 'old', 0o600), file('dir/kept', 'old')]);
      await box.sh('mkdir locked && chmod 555 locked');
      const before = await box.workspace.snapshot();
      const files = [
        file('kept', 'new'),
        file('dir/kept', 'new'),
        file('fresh/a/b', 'new'),
        file('fresh/a/c', 'new'),
      ];
      await expect(box.workspace.write([...files, file('locked/x', 'x')])).rejects.toMatchObject(
        refused(/locked\/x is refused: permission denied/i),
      );
      expect(box.tree()).toEqual(['dir/', 'dir/kept', 'kept', 'locked/']);
      expect(readFileSync(join(box.root, 'kept'), 'utf8')).toBe('old');
      expect([...(await box.workspace.snapshot()).files.keys()]).toEqual([...before.files.keys()]);
      expect(box.modeOf('kept')).toBe(0o600);
      expect(box.leftovers()).toEqual([]);
    }));

  test.skipIf(!isRoot)('[RS-08] a full disk leaves everything as it was', () =>
    withWorkspace(
      async (box) => {
        await box.workspace.write([file('kept', 'old')]);
        const half = Buffer.alloc(600 * 1024, 'x');
        const files = [file('kept', 'new'), file('new/one', half), file('new/two', half)];
        await expect(box.workspace.write(files)).rejects.toMatchObject({ code: 'DISK_FULL' });
        expect(box.tree()).toEqual(['kept']);
        expect(box.leftovers()).toEqual([]);
        expect(readFileSync(join(box.root, 'kept'), 'utf8')).toBe('old');
        await box.workspace.write([file('new/one', half)]);
        expect(statSync(join(box.root, 'new/one')).size).toBe(half.length);
      },
      { mount: { type: 'tmpfs', options: 'size=1m' } },
    ),
  );

  test.skipIf(!isRoot)('[RS-08] so does a file system without room for one more name', () =>
    withWorkspace(
      async (box) => {
        await box.workspace.write([file('kept', 'old')]);
        // The contents have room while they are staged, the folders not.
        const files = ['a', 'b', 'c', 'd'].map((name) => file(`${name}/x/y`, 'new'));
        await expect(box.workspace.write([file('kept', 'new'), ...files])).rejects.toMatchObject({
          code: 'DISK_FULL',
        });
        expect(box.tree()).toEqual(['kept']);
        expect(readFileSync(join(box.root, 'kept'), 'utf8')).toBe('old');
        expect(box.leftovers()).toEqual([]);
      },
      { mount: { type: 'tmpfs', options: 'nr_inodes=12' } },
    ),
  );

  test('[RS-08] a helper that is killed in the middle leaves nothing behind after the next start', () =>
    withWorkspace(async (box) => {
      await box.workspace.write([file('kept', 'old')]);
      const writing = box.workspace.write([
        file('kept', 'new'),
        file('large', Buffer.alloc(64 * 1024 * 1024)),
      ]);
      const failed = writing.catch((error: unknown) => error);
      while (box.leftovers().length === 0) await new Promise((resolve) => setImmediate(resolve));
      const [guest] = box.guests;
      await guest?.kill();
      expect(await failed).toMatchObject({ code: 'CELL_LOST' });
      expect(box.leftovers()).toHaveLength(1);
      expect(box.tree()).toEqual(['kept']);
      await box.workspace.write([file('after', 'x')]);
      expect(box.leftovers()).toEqual([]);
      expect(readFileSync(join(box.root, 'kept'), 'utf8')).toBe('old');
    }));

  test('[RS-08] a helper that died between two requests is replaced without a word', () =>
    withWorkspace(async ({ workspace, guests }) => {
      for (let round = 0; round < 5; round++) {
        await workspace.write([file(`round${round}`, 'x')]);
        await guests.at(-1)?.kill();
        expect(await workspace.read(`round${round}`, 10)).toMatchObject({ content: 'x' });
      }
      expect(guests).toHaveLength(6);
    }));

  test('[RS-08] what a hostile neighbour leaves in the staging folders does no harm', () =>
    withWorkspace(async (box) => {
      mkdirSync(box.outside, { mode: 0o777 });
      writeFileSync(join(box.outside, 'secret'), 'secret', { mode: 0o666 });
      await box.sh(
        'cd .. && mkdir .hotcell-staging-project-1 && ln -s ../outside .hotcell-staging-project-1/link',
      );
      symlinkSync('outside', join(box.base, '.hotcell-staging-project-2'));
      await box.workspace.close();
      await box.workspace.write([file('x', 'x')]);
      expect(box.leftovers()).toEqual([]);
      expect(readdirSync(box.outside)).toEqual(['secret']);
    }));

  test('[RS-08] changes that are asked for at once do not mix', () =>
    withWorkspace(async ({ workspace, root }) => {
      const names = Array.from({ length: 20 }, (_, at) => `f${at}`);
      const writers = Array.from({ length: 10 }, (_, writer) =>
        workspace.write(names.map((name) => file(name, String(writer)))),
      );
      await Promise.all(writers);
      const contents = new Set(names.map((name) => readFileSync(join(root, name), 'utf8')));
      expect(contents.size).toBe(1);
    }));

  test('[RS-08] the helper ends with the workspace, and stays away from whoever looks into it', () =>
    withWorkspace(async ({ workspace, guests }) => {
      await workspace.read('.', 1);
      const [guest] = guests;
      // Not dumpable: others of the same user can neither trace it nor open its streams.
      expect(statSync(`/proc/${guest?.pid}/mem`).uid).toBe(0);
      await workspace.close();
      await guest?.ended;
      expect(existsSync(`/proc/${guest?.pid}`)).toBe(false);
    }));

  test('[RS-08] an unreadable file can be replaced and removed', () =>
    withWorkspace(async (box) => {
      await box.sh('echo x >locked; chmod 000 locked; echo y >gone; chmod 000 gone');
      await box.workspace.write([file('locked', 'new')]);
      await box.workspace.remove(['gone']);
      expect(box.tree()).toEqual(['locked']);
      // It keeps its mode, as every file does whose new mode nobody says.
      await box.sh('chmod 600 locked');
      expect(await box.workspace.read('locked', 10)).toMatchObject({ content: 'new' });
    }));
});

describe('remove', () => {
  test('[RS-09] takes plain files only, all or nothing', () =>
    withWorkspace(async (box) => {
      const index = SyncIndex.empty();
      await box.workspace.write([file('a', '1'), file('b', '2'), file('d/c', '3')], index);
      await box.sh('ln -s a link');
      const { workspace } = box;
      await expect(workspace.remove(['a', 'none'])).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
      await expect(workspace.remove(['a', 'd'])).rejects.toMatchObject(refused());
      await expect(workspace.remove(['a', 'link'])).rejects.toMatchObject(refused());
      await expect(workspace.remove(['a', '../x'])).rejects.toMatchObject(refused());
      await expect(workspace.remove(['a', 'a'])).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
      expect(box.tree()).toEqual(['a', 'b', 'd/', 'd/c', 'link']);
      await workspace.remove(['a', 'd/c'], index);
      expect(box.tree()).toEqual(['b', 'd/', 'link']);
      expect([...index.brought()]).toEqual(['b']);
    }));
});
