import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  mkdirSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { extractArchive, type Extraction } from './extract-archive.ts';

interface Member {
  readonly path: string | Buffer;
  readonly type?: string;
  readonly target?: string;
  readonly content?: string | Buffer;
  readonly mode?: number;
  /** Said in the header, whatever follows. */
  readonly size?: number;
}

/** Writes what no honest program would. */
function tar(...members: readonly Member[]): Buffer {
  return Buffer.concat([...members.map(toMember), Buffer.alloc(1024)]);
}

function toMember({ path, type = '0', target = '', content = '', mode = 0o644, size }: Member): Buffer {
  const bytes = Buffer.from(content);
  const header = Buffer.alloc(512);
  Buffer.from(path).copy(header, 0, 0, 100);
  header.write(mode.toString(8).padStart(7, '0'), 100);
  header.write((size ?? bytes.length).toString(8).padStart(11, '0'), 124);
  header.write('14000000000', 136);
  header.write(' '.repeat(8), 148);
  header.write(type, 156);
  header.write(target, 157, 100);
  header.write('ustar\u000000', 257);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  return Buffer.concat([header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]);
}

const pax = (key: string, value: string): Member => {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  const length = rest + String(rest + 2).length;
  return { path: 'pax', type: 'x', content: `${length} ${key}=${value}\n` };
};

async function* inChunks(bytes: Uint8Array, size = 700): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}

let folder = '';
let into = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-extract-'));
  into = join(folder, 'deep', 'er', 'target');
  mkdirSync(into, { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

const extract = (archive: Uint8Array, options: Partial<Extraction> = {}) =>
  extractArchive(inChunks(archive), { into, below: [], mostBytes: 1_000_000, ...options });

/** Everything below the folder of the test, so that nothing can be written beside the target unseen. */
function everything(): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => !['deep', 'deep/er', 'deep/er/target'].includes(path))
    .map((path) => path.replace('deep/er/target/', ''))
    .toSorted();
}

describe('what is honest', () => {
  test('[RS-20] files, folders and links of a real archive come out', async () => {
    const source = join(folder, 'source');
    const long = 'long'.repeat(40);
    const make = `mkdir -p a/${long} && echo 1 > a/one && chmod 755 a/one && echo 2 > a/${long}/${long} && ln -s one a/link && ln -s ../one a/${long}/up && ln -s ${long}/${long} a/far && head -c 3000 /dev/urandom > rand`;
    mkdirSync(source);
    expect(spawnSync('bash', ['-c', make], { cwd: source }).status).toBe(0);
    for (const format of ['ustar', 'pax', 'gnu']) {
      const target = join(folder, format);
      mkdirSync(target);
      const { stdout, status } = spawnSync(
        'tar',
        ['-c', `--format=${format === 'ustar' ? 'pax' : format}`, '.'],
        { cwd: source },
      );
      expect(status).toBe(0);
      expect(await extract(stdout, { into: target })).toMatchObject({
        files: 3,
        links: 3,
        leftOut: [],
        root: 'folder',
      });
      expect(spawnSync('diff', ['-r', source, target]).status).toBe(0);
      expect(statSync(join(target, 'a/one')).mode & 0o777).toBe(0o755);
    }
  });

  test('[RS-20] a part of it, or a single file', async () => {
    const archive = tar(
      { path: 'a/b/c', content: 'x' },
      { path: 'a/bc', content: 'y' },
      { path: 'a/b/d/e', content: 'z' },
    );
    expect(await extract(archive, { below: ['a', 'b'] })).toMatchObject({ files: 2, root: 'folder' });
    expect(everything()).toEqual(['c', 'd', 'd/e']);
    rmSync(into, { recursive: true });
    mkdirSync(into);
    expect(await extract(archive, { below: ['a', 'bc'] })).toMatchObject({ files: 1, root: 'file' });
    expect(readFileSync(join(into, 'file'), 'utf8')).toBe('y');
    expect(await extract(archive, { below: ['nope'] })).toMatchObject({ root: 'missing' });
  });
});

describe('what is hostile', () => {
  test.each([
    ['a way up', '../evil'],
    ['a way up later', 'a/../../evil'],
    ['an absolute path', '/tmp/evil-of-hotcell'],
    ['a way up to itself', 'a/../evil'],
    ['no name', 'a//evil'],
    ['no text', Buffer.from([0x65, 0xff])],
    ['only a way up', '..'],
  ])('[RS-20] %s is left out', async (_name, path) => {
    const result = await extract(tar({ path, content: 'evil' }, { path: 'good', content: 'x' }));
    expect([everything(), result.leftOut.length]).toEqual([['good'], 1]);
  });

  test.each(['../../evil', '/tmp/evil-of-hotcell', 'x\0y'])(
    '[RS-20] a long name %j is checked like a short one',
    async (path) => {
      await extract(tar(pax('path', path), { path: 'fine', content: 'evil' })).catch(() => undefined);
      expect(everything().filter((name) => name !== 'x')).toEqual([]);
    },
  );

  test.each([
    ['up', 'link', '..'],
    ['absolute', 'link', '/etc'],
    ['up from below', 'a/link', '../..'],
    ['down and up', 'link', 'a/../..'],
    ['down and up inside', 'link', 'a/../b'],
    ['empty', 'link', ''],
  ])('[RS-20] a link that leads %s is left out', async (_name, path, target) => {
    const result = await extract(tar({ path: 'a', type: '5' }, { path, type: '2', target }));
    expect([everything(), result.leftOut]).toEqual([['a'], [path]]);
  });

  test('[RS-20] nothing is written through a link, in whatever order', async () => {
    mkdirSync(join(folder, 'outside'));
    const archives = [
      tar({ path: 'l', type: '2', target: '.' }, { path: 'l/x', content: 'evil' }),
      tar({ path: 'd/x', content: 'a' }, { path: 'd', type: '2', target: 'e' }),
      tar({ path: 'l', type: '2', target: 'd' }, { path: 'l/m', type: '2', target: 'x' }),
      tar({ path: 'f', content: 'a' }, { path: 'f', content: 'b' }),
      tar({ path: 'f', content: 'a' }, { path: 'f/g', content: 'b' }),
    ];
    for (const archive of archives) {
      await expect(extract(archive)).rejects.toMatchObject({ code: 'BAD_ARCHIVE' });
      rmSync(into, { recursive: true });
      mkdirSync(into);
    }
    expect(readdirSync(join(folder, 'outside'))).toEqual([]);
  });

  test('[RS-20] links that are harmless alone do not lead out together', async () => {
    await extract(
      tar(
        { path: 'a/b', type: '5' },
        { path: 'here', type: '2', target: '.' },
        { path: 'a/b/top', type: '2', target: '../..' },
        { path: 'x', type: '2', target: 'here/a/b/top' },
      ),
    );
    expect(readlinkSync(join(into, 'x'))).toBe('here/a/b/top');
    const { stdout } = spawnSync('realpath', [join(into, 'x'), join(into, 'a/b/top'), join(into, 'here')], {
      encoding: 'utf8',
    });
    for (const path of stdout.trim().split('\n')) expect(`${path}/`.startsWith(`${into}/`)).toBe(true);
  });

  test.each([
    ['a device', '3'],
    ['a block device', '4'],
    ['a FIFO', '6'],
    ['a hard link', '1'],
    ['something new', 'Z'],
  ])('[RS-20] %s is left out', async (_name, type) => {
    const result = await extract(tar({ path: 'odd', type, target: '/etc/passwd' }, { path: 'good' }));
    expect([everything(), result.leftOut]).toEqual([['good'], ['odd']]);
  });

  test('[RS-20] rights to become somebody else are not taken over', async () => {
    await extract(tar({ path: 'suid', mode: 0o6777 }, { path: 'none', mode: 0 }));
    expect(lstatSync(join(into, 'suid')).mode & 0o7000).toBe(0);
    expect(lstatSync(join(into, 'none')).mode & 0o777).toBe(0o600);
  });

  test('[MC-11] what is for everybody to read can be read and not changed by others, whatever the archive says', async () => {
    const before = process.umask(0o077);
    try {
      const members = [
        { path: 'd/run', mode: 0o6711 },
        { path: 'd/none', mode: 0 },
        { path: 'd/all', mode: 0o666 },
      ];
      await extract(tar(...members), { isPublic: true });
    } finally {
      process.umask(before);
    }
    const modes = ['d', 'd/run', 'd/none', 'd/all'].map((path) => lstatSync(join(into, path)).mode & 0o7777);
    expect(modes).toEqual([0o755, 0o755, 0o644, 0o644]);
  });

  test('[MC-11] no more members than allowed', async () => {
    const members = Array.from({ length: 4 }, (_, index) => ({ path: `f${index}` }));
    await expect(extract(tar(...members), { mostItems: 3 })).rejects.toMatchObject({
      code: 'FILE_TOO_LARGE',
    });
  });

  test.each([
    ['larger than allowed', tar({ path: 'big', size: 8 ** 11 - 1 }), 'FILE_TOO_LARGE'],
    [
      'larger together',
      tar({ path: 'a', content: Buffer.alloc(600_000) }, { path: 'b', content: Buffer.alloc(600_000) }),
      'FILE_TOO_LARGE',
    ],
    ['larger by a header before it', tar(pax('size', '9000000000'), { path: 'a' }), 'FILE_TOO_LARGE'],
    ['cut off', tar({ path: 'a', content: 'x'.repeat(2000) }).subarray(0, 1024), 'BAD_ARCHIVE'],
    ['cut off between members', tar({ path: 'a' }).subarray(0, 512), 'BAD_ARCHIVE'],
    ['empty', Buffer.alloc(0), 'BAD_ARCHIVE'],
    ['no archive', Buffer.alloc(1024, 'x'), 'BAD_ARCHIVE'],
    ['full of long names', tar({ path: 'x', type: 'x', size: 10_000_000 }), 'BAD_ARCHIVE'],
    [
      'wrong in its long names',
      tar({ path: 'x', type: 'x', content: '99 path=a\n' }, { path: 'a' }),
      'BAD_ARCHIVE',
    ],
  ])('[RS-20] an archive that is %s is refused', async (_name, archive, code) => {
    await expect(extract(archive)).rejects.toMatchObject({ code });
  });
});
