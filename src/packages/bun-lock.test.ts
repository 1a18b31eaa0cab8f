import { describe, expect, test } from 'vitest';
import { parseBunLock } from './bun-lock.ts';

const SUM = `sha512-${'A'.repeat(86)}==`;

function lock(
  packages: Record<string, unknown>,
  dependencies: Record<string, string> = { zod: '^3' },
): string {
  return JSON.stringify({ lockfileVersion: 2, workspaces: { '': { dependencies } }, packages });
}

describe('[MC-11] a lock file', () => {
  test('as bun writes it', () => {
    const text = `{
  "lockfileVersion": 2,
  "configVersion": 1,
  "workspaces": {
    "": {
      "name": "set",
      "dependencies": {
        "@a/b": "1",
        "zod": "3.22.4",
      },
    },
  },
  "trustedDependencies": [],
  "packages": {
    "@a/b": ["@a/b@1.2.3", "http://mirror.example.org/x.tgz", { "dependencies": { "c": "," }, "bin": { "b": "x,}", }, }, "${SUM}"],

    "@a/b/@d/c": ["@d/c@1.0.0-beta.1+5", "", {}, "${SUM}"],

    "@a/b/@d/c/alias": ["real@2.0.0", "", { "os": "darwin", }, "sha1-${'A'.repeat(27)}="],

    "zod": ["zod@3.22.4", "", {}, "${SUM}"],
  }
}
`;
    expect(parseBunLock(text)).toEqual({
      asked: new Map([
        ['@a/b', '1'],
        ['zod', '3.22.4'],
      ]),
      packages: [
        {
          name: '@a/b',
          version: '1.2.3',
          url: 'http://mirror.example.org/x.tgz',
          path: 'node_modules/@a/b',
          isTop: true,
        },
        {
          name: '@d/c',
          version: '1.0.0-beta.1+5',
          url: undefined,
          path: 'node_modules/@a/b/node_modules/@d/c',
          isTop: false,
        },
        {
          name: 'real',
          version: '2.0.0',
          url: undefined,
          path: 'node_modules/@a/b/node_modules/@d/c/node_modules/alias',
          isTop: false,
        },
        { name: 'zod', version: '3.22.4', url: undefined, path: 'node_modules/zod', isTop: true },
      ],
    });
  });

  test('an alias is not the package whose name it has', () => {
    const { packages } = parseBunLock(lock({ zod: ['evil@1.0.0', '', {}, SUM] }));
    expect(packages).toEqual([expect.objectContaining({ name: 'evil', isTop: false })]);
  });

  test.each<[string, unknown[]]>([
    ['an address', ['x@http://evil.example.org/x.tgz', {}]],
    ['an address in place of a version', ['x@http://evil.example.org/x.tgz', '', {}, SUM]],
    ['a repository', ['x@github:a/b#123', {}, 'a-b-123']],
    ['a folder', ['x@file:../x', {}]],
    ['a link', ['x@link:x', {}]],
    ['a workspace', ['x@workspace:x']],
    ['no checksum', ['x@1.0.0', '', {}]],
    ['an empty checksum', ['x@1.0.0', '', {}, '']],
    ['nonsense for a checksum', ['x@1.0.0', '', {}, 'md5-x']],
    ['a file for an address', ['x@1.0.0', 'file:///x.tgz', {}, SUM]],
    ['a range for a version', ['x@^1', '', {}, SUM]],
    ['a path for a name', ['../x@1.0.0', '', {}, SUM]],
    ['no name', ['@1.0.0', '', {}, SUM]],
    ['no version', ['x', '', {}, SUM]],
    ['more than there is', ['x@1.0.0', '', {}, SUM, 'more']],
    ['a number', [1]],
    ['nothing', []],
  ])('%s is refused', (_what, line) => {
    expect(() => parseBunLock(lock({ x: line }))).toThrow(/x|no sense|no package/);
  });

  test.each(['..', 'a/..', '../a', '/a', 'a//b', '@a', 'a/@b', '.bin', 'a/.bin', 'a\u0000', ''])(
    'no package lies at %j',
    (key) => {
      expect(() => parseBunLock(lock({ [key]: ['x@1.0.0', '', {}, SUM] }))).toThrow('does not come from');
    },
  );

  test('what is called as the prototype of objects is no package', () => {
    const text = lock({ KEY: ['x@1.0.0', '', {}, SUM] }).replace('"KEY"', '"__proto__"');
    expect(parseBunLock(text).packages).toEqual([]);
  });

  test.each([
    '',
    '{}',
    '[]',
    'null',
    '{',
    '{"lockfileVersion": 3}',
    '{"lockfileVersion":2,"workspaces":{},"packages":{}}',
    '{"lockfileVersion":2,"workspaces":{"":{"dependencies":{}},"other":{}},"packages":{}}',
    '['.repeat(100_000),
    `"${'\\'.repeat(100_001)}`,
  ])('is none: %.60s', (text) => {
    expect(() => parseBunLock(text)).toThrow('makes no sense');
  });

  test('of more packages than anybody needs is refused', () => {
    const many = Object.fromEntries(
      Array.from({ length: 5001 }, (_, index) => [`p${index}`, [`p${index}@1.0.0`, '', {}, SUM]]),
    );
    expect(() => parseBunLock(lock(many))).toThrow('more than 5000');
  });
});
