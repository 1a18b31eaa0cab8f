import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { inspectFolders, planFolders } from './bound-folders.ts';

const at = (name: string, place: string, folder = '/x') => ({ name, folder, at: place });

describe('which folder lies in which', () => {
  test('[FL-09] the innermost one before it', () => {
    const planned = planFolders([
      at('work', '/workspace'),
      at('deep', '/workspace/a'),
      at('file', '/workspace/a/b'),
      at('beside', '/workspace-2'),
    ]);
    expect(planned.map(({ outer }) => outer?.name)).toEqual([undefined, 'work', 'deep', undefined]);
  });

  test.each([
    ['the same place twice', [at('one', '/a'), at('two', '/a')]],
    ['one over another', [at('one', '/a/b'), at('two', '/a')]],
    ['over the root', [at('one', '/')]],
    ['over what cells have of their own', [at('one', '/tmp/x')]],
    ['over the guest files', [at('one', '/opt')]],
    ['a way up', [at('one', '/a/../proc')]],
    ['no whole path', [at('one', 'a')]],
  ])('[FL-09, SC-03] refused: %s', (_what, folders) => {
    expect(() => planFolders(folders)).toThrow(expect.objectContaining({ code: 'INTERNAL' }));
  });
});

describe('a mount that lies in another', () => {
  let host = '';
  beforeEach(() => {
    host = mkdtempSync(join(tmpdir(), 'hotcell-bound-'));
    mkdirSync(join(host, 'work/sub'), { recursive: true });
    writeFileSync(join(host, 'work/.git'), '');
    writeFileSync(join(host, 'pointer'), '');
    symlinkSync('.git', join(host, 'work/link'));
    symlinkSync('sub', join(host, 'work/way'));
    writeFileSync(join(host, 'work/sub/file'), '');
  });
  afterEach(() => rmSync(host, { recursive: true }));

  const inspect = (place: string, inner = 'pointer') =>
    inspectFolders([
      at('work', '/workspace', join(host, 'work')),
      at('inner', `/workspace/${place}`, join(host, inner)),
    ]);

  test('[FL-09] lies on something of its kind', async () => {
    expect((await inspect('.git')).map(({ isFile }) => isFile)).toEqual([false, true]);
    expect((await inspect('sub', 'work')).map(({ isFile }) => isFile)).toEqual([false, false]);
  });

  test.each([
    ['nothing is there', 'none', 'pointer'],
    ['a folder is there', 'sub', 'pointer'],
    ['a file is there', '.git', 'work'],
    ['a link is there, which the cell may have made', 'link', 'pointer'],
    ['a link is on the way', 'way/file', 'pointer'],
    ['there is nothing to mount', '.git', 'none'],
  ])('[FL-09, SC-03] refused, and nothing made: %s', async (_why, place, inner) => {
    const before = readdirSync(host, { recursive: true });
    await expect(inspect(place, inner)).rejects.toMatchObject({ code: 'CELL_START_FAILED' });
    expect(readdirSync(host, { recursive: true })).toEqual(before);
  });
});
