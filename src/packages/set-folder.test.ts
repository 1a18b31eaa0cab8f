import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { setKey } from './install-request.ts';
import { SetFolder, type SetFacts } from './set-folder.ts';

let parent = '';
let path = '';
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'hotcell-sets-'));
  path = join(parent, 'packages');
});
afterEach(() => rmSync(parent, { recursive: true }));

const OWNERS = {
  record: () => Promise.resolve('alive'),
  isAlive: (record: string) => Promise.resolve(record === 'alive'),
};
const openSets = (): Promise<SetFolder> => SetFolder.open({ path, lockFile: 'bun.lock', owners: OWNERS });
const list = (name: string): string[] => readdirSync(join(path, name)).toSorted();

/** Puts a set there, as an installation does. */
async function add(sets: SetFolder, text: string, bytes = 10): Promise<string> {
  const staged = await sets.stage();
  const facts: SetFacts = {
    platform: 'test',
    bytes,
    packages: [{ name: 'zod', version: '1.0.0', from: 'registry.example.org', direct: true }],
    places: ['node_modules/zod'],
  };
  writeFileSync(join(staged.folder, 'bun.lock'), text);
  mkdirSync(join(staged.folder, 'node_modules/zod'), { recursive: true });
  const key = setKey('test', text);
  await staged.commit(key, facts);
  return key;
}

/** As if it had been used for the last time so long ago. */
function age(key: string, ms: number): void {
  const then = (Date.now() - ms) / 1000;
  utimesSync(join(path, 'store', key, 'packages.json'), then, then);
}

describe('[MC-11] a folder of sets', () => {
  test('keeps them, and what led to them', async () => {
    const sets = await openSets();
    const key = await add(sets, 'lock');
    await sets.remember('request', key);
    const again = await openSets();
    expect(again.resolved('request')).toBe(key);
    expect(again.load(key)).toMatchObject({ bytes: 10 });
    expect(again.resolved('other')).toBeUndefined();
    expect(list('staging')).toEqual([]);
  });

  test('can be read by programs of cells, but not listed beyond the sets', async () => {
    const before = process.umask(0o077);
    try {
      const key = await add(await openSets(), 'lock');
      const modes = ['.', 'store', `store/${key}`, `store/${key}/packages.json`, 'resolved', 'staging'].map(
        (name) => statSync(join(path, name)).mode & 0o777,
      );
      expect(modes).toEqual([0o755, 0o755, 0o755, 0o644, 0o700, 0o700]);
    } finally {
      process.umask(before);
    }
  });

  test('is not taken when others can write to it', async () => {
    mkdirSync(path);
    chmodSync(path, 0o777);
    await expect(openSets()).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
  });

  test.each([
    ['without its marker', 'packages.json'],
    ['without its lock file', 'bun.lock'],
    ['without its packages', 'node_modules'],
    ['without the package itself', 'node_modules/zod'],
  ])('a set %s is none, and can be put there again', async (_what, name) => {
    const sets = await openSets();
    const key = await add(sets, 'lock');
    rmSync(join(path, 'store', key, name), { recursive: true });
    expect(sets.load(key)).toBeUndefined();
    expect(await add(sets, 'lock')).toBe(key);
    expect(sets.load(key)).toBeDefined();
    expect(list('staging')).toEqual([]);
  });

  test('a set whose lock file was changed is none', async () => {
    const sets = await openSets();
    const key = await add(sets, 'lock');
    writeFileSync(join(path, 'store', key, 'bun.lock'), 'other');
    expect(sets.load(key)).toBeUndefined();
  });

  test.each(['../../etc', '', 'x'.repeat(64), '__proto__'])('%j is no key', async (key) => {
    const sets = await openSets();
    writeFileSync(join(path, 'resolved', 'request.json'), JSON.stringify({ key }));
    expect(sets.resolved('request')).toBeUndefined();
    expect(sets.load(key)).toBeUndefined();
  });

  test.each(['', '{', '[]', '{"key":1}', '{"key":"x","more":1}'])(
    'a note of %j leads nowhere',
    async (text) => {
      const sets = await openSets();
      writeFileSync(join(path, 'resolved', 'request.json'), text);
      expect(sets.resolved('request')).toBeUndefined();
    },
  );

  test('whoever is second to finish keeps the set of the first', async () => {
    const sets = await openSets();
    const [first, second] = [await sets.stage(), await sets.stage()];
    const key = setKey('test', 'lock');
    const facts: SetFacts = { platform: 'test', bytes: 1, packages: [], places: [] };
    for (const { folder } of [first, second]) {
      writeFileSync(join(folder, 'bun.lock'), 'lock');
      mkdirSync(join(folder, 'node_modules'));
    }
    writeFileSync(join(first.folder, 'node_modules/first'), '');
    expect(await first.commit(key, facts)).toBe(true);
    expect(await second.commit(key, facts)).toBe(false);
    expect(readdirSync(join(path, 'store', key, 'node_modules'))).toEqual(['first']);
    expect(list('staging')).toEqual([]);
  });

  test('what dead servers had begun is removed, what living ones have begun is not', async () => {
    const sets = await openSets();
    await sets.stage();
    for (const [name, record] of [
      ['dead', 'dead'],
      ['broken', ''],
    ] as const) {
      mkdirSync(join(path, 'staging', name, 'set'), { recursive: true });
      writeFileSync(join(path, 'staging', name, 'owner.json'), record);
    }
    mkdirSync(join(path, 'staging', '.new-young'));
    mkdirSync(join(path, 'staging', '.new-old'));
    const then = Date.now() / 1000 - 3600;
    utimesSync(join(path, 'staging', '.new-old'), then, then);
    await openSets();
    expect(list('staging')).toEqual(['.new-young', expect.stringMatching(/^[0-9a-f]{16}$/)]);
  });
});

describe('[MC-11] a folder of sets that is too large', () => {
  const HOUR = 3_600_000;
  const aHourAgo = (): number => Date.now() - HOUR;

  test('loses those that were not used for the longest time, and no more than needed', async () => {
    const sets = await openSets();
    const keys = [await add(sets, 'a'), await add(sets, 'b'), await add(sets, 'c')];
    const [a = '', b = '', c = ''] = keys;
    age(a, 3 * HOUR);
    age(b, 4 * HOUR);
    age(c, 2 * HOUR);
    expect(await sets.shrink(30, aHourAgo(), new Set())).toEqual([]);
    expect(await sets.shrink(20, aHourAgo(), new Set())).toEqual([b]);
    expect(list('store')).toEqual([a, c].toSorted());
    expect(list('staging')).toEqual([]);
  });

  test('keeps what was used in the last hour, or is held, however large', async () => {
    const sets = await openSets();
    const [old, held, young] = [await add(sets, 'a'), await add(sets, 'b'), await add(sets, 'c')];
    age(old, 2 * HOUR);
    age(held, 2 * HOUR);
    expect(await sets.shrink(0, aHourAgo(), new Set([held]))).toEqual([old]);
    expect(list('store')).toEqual([held, young].toSorted());
  });

  test('to be loaded is to be used', async () => {
    const sets = await openSets();
    const [one, other] = [await add(sets, 'a'), await add(sets, 'b')];
    age(one, 2 * HOUR);
    age(other, 2 * HOUR);
    sets.load(one);
    expect(await sets.shrink(0, aHourAgo(), new Set())).toEqual([other]);
  });

  test('forgets what is no set first', async () => {
    const sets = await openSets();
    const key = await add(sets, 'a');
    age(key, 2 * HOUR);
    mkdirSync(join(path, 'store', 'f'.repeat(64)));
    mkdirSync(join(path, 'store', 'not-ours'));
    expect(await sets.shrink(0, aHourAgo(), new Set())).toEqual(['f'.repeat(64), key]);
    expect(existsSync(join(path, 'store', 'not-ours'))).toBe(true);
  });
});
