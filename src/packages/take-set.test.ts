import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TAR_END, toPadding, toTarHeader } from '../lib/tar-member.ts';
import type { InstallRequest } from './install-request.ts';
import { NPM } from './npm-ecosystem.ts';
import { takeSet, type Taking } from './take-set.ts';

const SUM = `sha512-${'A'.repeat(86)}==`;
const REQUEST: InstallRequest = {
  ecosystem: 'npm',
  specs: [{ name: 'zod', range: '^3' }],
  registry: { variables: {}, hosts: ['registry.example.org'] },
  platform: 'test',
  minimumReleaseAgeSeconds: 0,
};

let folder = '';
let into = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-take-'));
  into = join(folder, 'set');
  mkdirSync(into);
});
afterEach(() => rmSync(folder, { recursive: true }));

function lock(
  packages: Record<string, unknown>,
  dependencies: Record<string, string> = { zod: '^3' },
): string {
  return JSON.stringify({ lockfileVersion: 2, workspaces: { '': { dependencies } }, packages });
}

const ZOD = { zod: ['zod@3.22.4', '', {}, SUM] };

/** What a cell would send. */
function archive(files: Record<string, string>): Uint8Array {
  const members = Object.entries(files).flatMap(([path, content]) => {
    const bytes = Buffer.from(content);
    const member = { kind: 'file', path: Buffer.from(path), target: Buffer.alloc(0), mode: 0o644 } as const;
    const header = toTarHeader({ ...member, size: bytes.length, modifiedSeconds: 0 });
    return [header, bytes, toPadding(bytes.length)];
  });
  return Buffer.concat([...members, TAR_END]);
}

const HONEST = { 'bun.lock': lock(ZOD), 'node_modules/zod/index.js': '1' };

async function take(files: Record<string, string>, more: Partial<Taking> = {}) {
  async function* chunks() {
    yield await Promise.resolve(archive(files));
  }
  return takeSet(chunks(), {
    ecosystem: NPM,
    request: REQUEST,
    into,
    mostBytes: 1_000_000,
    mostItems: 100,
    ...more,
  });
}

const refusal = (message: RegExp | string): unknown =>
  expect.objectContaining({
    code: 'PACKAGE_UNAVAILABLE',
    message: expect.stringMatching(message) as string,
  });

describe('[MC-11] what a cell says it has installed', () => {
  test('is taken when it is what was asked for', async () => {
    const { key, facts } = await take(HONEST);
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(facts).toEqual({
      platform: 'test',
      bytes: Buffer.byteLength(HONEST['bun.lock']) + 1,
      packages: [{ name: 'zod', version: '3.22.4', from: 'registry.example.org', direct: true }],
      places: ['node_modules/zod'],
    });
  });

  test('has another key on another platform', async () => {
    const { key } = await take(HONEST);
    rmSync(into, { recursive: true });
    mkdirSync(into);
    const other = await take(HONEST, { request: { ...REQUEST, platform: 'other' } });
    expect(other.key).not.toBe(key);
  });

  test('packages for other platforms are not listed, and the same twice is once', async () => {
    const packages = {
      ...ZOD,
      'zod/a': ['a@1.0.0', '', {}, SUM],
      a: ['a@1.0.0', 'https://files.example.org/a.tgz', {}, SUM],
      darwin: ['darwin@1.0.0', '', { os: 'darwin' }, SUM],
    };
    const files = {
      'bun.lock': lock(packages),
      'node_modules/zod/node_modules/a/x': '1',
      'node_modules/zod/x': '1',
      'node_modules/a/x': '1',
    };
    const { facts } = await take(files);
    expect(facts.packages.map(({ name, direct, from }) => [name, direct, from])).toEqual([
      ['zod', true, 'registry.example.org'],
      ['a', false, 'files.example.org'],
    ]);
  });

  test.each<[string, Record<string, string>, RegExp]>([
    [
      'another range than asked for',
      { ...HONEST, 'bun.lock': lock(ZOD, { zod: '*' }) },
      /something else was installed in place of zod/,
    ],
    [
      'another package than asked for',
      { 'bun.lock': lock({ ms: ['ms@1.0.0', '', {}, SUM] }, { ms: '^3' }), 'node_modules/ms/x': '1' },
      /in place of zod/,
    ],
    [
      'more than asked for',
      { ...HONEST, 'bun.lock': lock({ ...ZOD, ms: ['ms@1.0.0', '', {}, SUM] }, { zod: '^3', ms: '1' }) },
      /more was installed/,
    ],
    [
      'another package under that name',
      { ...HONEST, 'bun.lock': lock({ zod: ['evil@3.22.4', '', {}, SUM] }) },
      /in place of zod/,
    ],
    ['a lock without it', { ...HONEST, 'bun.lock': lock({}) }, /in place of zod/],
    [
      'a package without files',
      { 'bun.lock': lock(ZOD), 'node_modules/.bin/x': '1' },
      /not there for this platform/,
    ],
    [
      'a file in its place',
      { 'bun.lock': lock(ZOD), 'node_modules/zod': '1' },
      /not there for this platform/,
    ],
    ['a stranger', { ...HONEST, 'node_modules/ms/index.js': '1' }, /"ms" is in no lock file/],
    [
      'a stranger in a scope',
      { ...HONEST, 'node_modules/@a/ms/index.js': '1' },
      /"@a\/ms" is in no lock file/,
    ],
    ['a hidden stranger', { ...HONEST, 'node_modules/.evil/x': '1' }, /in no lock file/],
    ['a marker of its own', { ...HONEST, 'packages.json': '{}' }, /something else was installed/],
    ['no lock', { 'node_modules/zod/index.js': '1' }, /something else was installed/],
    ['a lock that is a folder', { 'bun.lock/x': '1', 'node_modules/zod/x': '1' }, /makes no sense/],
    ['no modules', { 'bun.lock': lock(ZOD) }, /something else was installed/],
    ['modules that are a file', { 'bun.lock': lock(ZOD), node_modules: 'x' }, /zod cannot be installed/],
    ['names that climb', { ...HONEST, 'node_modules/zod/../../../evil': '1' }, /no plain file/],
    ['more bytes than allowed', { ...HONEST, 'node_modules/zod/big': 'x'.repeat(1_000_000) }, /too large/],
    [
      'more files than allowed',
      {
        ...HONEST,
        ...Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`node_modules/zod/${at}`, ''])),
      },
      /too large/,
    ],
    ['a lock that is too large', { ...HONEST, 'bun.lock': ' '.repeat(900_000) }, /makes no sense/],
  ])('%s is refused, and zod is named', async (_what, files, message) => {
    await expect(take(files)).rejects.toEqual(refusal(message));
    await expect(take(files, { into: mkdtempSync(join(folder, 'again-')) })).rejects.toEqual(
      refusal(/^zod cannot be installed: /),
    );
    expect(readdirSync(folder).filter((name) => !/^(?:set|again-)/.test(name))).toEqual([]);
  });
});
