import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { TAR_END, toTarHeader, type TarMember } from './tar-member.ts';

const member = (part: Partial<TarMember>): TarMember => ({
  kind: 'file',
  path: Buffer.from('f'),
  target: Buffer.alloc(0),
  mode: 0o644,
  size: 0,
  modifiedSeconds: 0,
  ...part,
});

/** What the real tar reads in it. */
function list(...members: readonly TarMember[]): string[] {
  const input = Buffer.concat([...members.map(toTarHeader), TAR_END]);
  const { stdout } = spawnSync('tar', ['-tvf', '-', '--utc', '--full-time'], {
    input,
    encoding: 'utf8',
    env: { LC_ALL: 'C.UTF-8' },
  });
  return stdout.trimEnd().split('\n');
}

test('[RS-11] sizes, times, modes and long names are read as they were written', () => {
  const long = 'd/'.repeat(200);
  expect(
    list(
      member({ mode: 0o4755, modifiedSeconds: 1_000_000_000 }),
      member({ kind: 'folder', path: Buffer.from('dir') }),
      member({ kind: 'link', path: Buffer.from('l'), target: Buffer.from('t'.repeat(150)) }),
      member({ path: Buffer.from(`${long}ä`) }),
      member({ path: Buffer.from('x'.repeat(100)) }),
      member({ path: Buffer.from('x'.repeat(101)) }),
    ),
  ).toEqual([
    '-rwsr-xr-x 0/0               0 2001-09-09 01:46:40 f',
    'drw-r--r-- 0/0               0 1970-01-01 00:00:00 dir/',
    `lrw-r--r-- 0/0               0 1970-01-01 00:00:00 l -> ${'t'.repeat(150)}`,
    `-rw-r--r-- 0/0               0 1970-01-01 00:00:00 ${long}ä`,
    `-rw-r--r-- 0/0               0 1970-01-01 00:00:00 ${'x'.repeat(100)}`,
    `-rw-r--r-- 0/0               0 1970-01-01 00:00:00 ${'x'.repeat(101)}`,
  ]);
});

test('[RS-11] a file of more than 8 GiB says its size', () => {
  const size = 20 * 1024 ** 3;
  expect(list(member({ size }))[0]).toContain(String(size));
});
