import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toTar, toTarHead } from './tar-archive.ts';
import { toPadding } from './tar-member.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const file = (path: string, text = '', mode = 0o644) => ({ path, content: bytes(text), mode });

/** The real program is the judge. */
function tar(args: readonly string[], input: Uint8Array): string[] {
  const { status, stdout, stderr } = spawnSync('tar', args, { input, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.split('\n').filter((line) => line !== '');
}

describe('as tar lists it', () => {
  test('files belong to root, folders come first and once, times are fixed', () => {
    const archive = toTar([file('a/b/one.sh', 'x', 0o755), file('a/b/two', ''), file('three', 'abc', 0o600)]);
    expect(archive.length % 512).toBe(0);
    const lines = tar(['-tv', '--numeric-owner', '--utc', '-f', '-'], archive);
    expect(lines.map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
      'drwxr-xr-x 0/0 0 2024-01-01 00:00 a/',
      'drwxr-xr-x 0/0 0 2024-01-01 00:00 a/b/',
      '-rwxr-xr-x 0/0 1 2024-01-01 00:00 a/b/one.sh',
      '-rw-r--r-- 0/0 0 2024-01-01 00:00 a/b/two',
      '-rw------- 0/0 3 2024-01-01 00:00 three',
    ]);
  });

  const deep = (count: number): string => Array.from({ length: count }, () => 'folder').join('/');
  test.each([
    ['100 bytes', 'n'.repeat(100)],
    ['101 bytes without a slash', 'n'.repeat(101)],
    ['a prefix that fits', `${deep(20)}/name`],
    ['the longest prefix and name', `${'p'.repeat(155)}/${'n'.repeat(100)}`],
    ['a prefix one byte too long', `${'p'.repeat(156)}/${'n'.repeat(100)}`],
    ['a name one byte too long', `${'p'.repeat(155)}/${'n'.repeat(101)}`],
    ['far too long', `${deep(60)}/name`],
    ['a record whose length gets another digit from counting itself', 'n'.repeat(990 - ' path=\n'.length)],
    ['other scripts', `${'путь/'.repeat(30)}файл`],
  ])('a path of %s comes out whole', (_what, path) => {
    const lines = tar(['-t', '--quoting-style=literal', '-f', '-'], toTar([file(path, 'x')]));
    expect(lines.at(-1)).toBe(path);
    expect(lines.length).toBe(path.split('/').length);
  });
});

describe('as tar unpacks it', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'hotcell-tar-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test.each([0, 1, 511, 512, 513, 100_000])('%i bytes are the same bytes', (size) => {
    const content = Uint8Array.from({ length: size }, (_, index) => (index * 7) % 256);
    tar(['-x', '-C', folder, '-f', '-'], toTar([{ path: `size/${size}`, content, mode: 0o640 }]));
    const path = join(folder, 'size', String(size));
    expect(Buffer.compare(readFileSync(path), content)).toBe(0);
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  test('nothing is an archive too', () => {
    expect(tar(['-t', '-f', '-'], toTar([]))).toEqual([]);
  });
});

describe('refused', () => {
  test.each(['', '/etc/passwd', '../up', 'a/../b', './a', 'a//b', 'a/', 'a\0b'])('the path %j', (path) => {
    expect(() => toTar([file(path)])).toThrow(RangeError);
  });

  test('a path given twice, or for a file and a folder', () => {
    expect(() => toTar([file('a'), file('a')])).toThrow('the same path');
    expect(() => toTar([file('a/b'), file('a')])).toThrow('a file and a folder');
    expect(() => toTar([file('a'), file('a/b')])).toThrow('a file and a folder');
  });
});

test('the same files make the same archive', () => {
  const make = (): Uint8Array => toTar([file('a/b', 'x'), file('c', 'y')]);
  expect(Buffer.compare(make(), make())).toBe(0);
});

test.each([0, 1, 511, 512, 513])('a file of %i bytes may be put before an archive piece by piece', (size) => {
  const content = bytes('x'.repeat(size));
  const head = toTarHead({ path: 'large', mode: 0o644, size });
  const archive = Buffer.concat([head, content, toPadding(size), toTar([file('after', 'y')])]);
  expect(tar(['-xO', '-f', '-'], archive)).toEqual([`${'x'.repeat(size)}y`]);
  expect(tar(['-t', '-f', '-'], archive)).toEqual(['large', 'after']);
  expect(() => toTarHead({ path: '../x', mode: 0o644, size })).toThrow(RangeError);
});
