import { describe, expect, test } from 'vitest';
import { isPackageName, isRange, mergeSpecs, parsePackageSpec, quoted } from './package-spec.ts';

describe('[MC-10] what a package may be asked for as', () => {
  test.each([
    ['zod', 'zod', undefined],
    ['zod@3', 'zod', '3'],
    ['zod@3.22.4', 'zod', '3.22.4'],
    ['@scope/name', '@scope/name', undefined],
    ['@scope/name@^1.2', '@scope/name', '^1.2'],
    ['npm:zod@next', 'zod', 'next'],
  ])('%s', (text, name, range) => {
    expect(parsePackageSpec(text)).toEqual({ name, range });
  });

  test.each([
    '',
    '@',
    '@/x',
    'a/b',
    '../x',
    '/etc',
    '__proto__',
    '.bin',
    '-g',
    '--registry=http://x',
    'zod@',
    'zod@file:x',
    'zod@http://x/y.tgz',
    'https://x/y.tgz',
    'git+ssh://git@x/y',
    'user/repo',
    'zod@user/repo',
    'zod@npm:evil',
    'alias@npm:zod@3',
    'zod@workspace:*',
    'zod@link:.',
    'zod@catalog:',
    'zod@patch:x',
    'zod@3\n--trust',
    'zod\n',
    'zod ',
    'node_modules',
    'x'.repeat(215),
    `zod@${'1'.repeat(200)}`,
  ])('not %j', (text) => {
    expect(() => parsePackageSpec(text)).toThrow(
      expect.objectContaining({ code: 'PACKAGE_UNAVAILABLE' }) as Error,
    );
  });

  test.each([
    '1',
    '1.2',
    '1.2.3',
    'v1.2.3',
    '^1.2.3',
    '~1.2',
    '>=1 <2',
    '>= 1.0.0',
    '1.x',
    '1.2.*',
    '*',
    '1.2.3-beta.1',
    '1.2.3-0+build.5',
    '1.2.3 - 2.3.4',
    '^1 || ^2',
    '^1||^2',
    'latest',
    'next',
    'beta.1-x',
  ])('the range %s', (range) => {
    expect(isRange(range)).toBe(true);
  });

  test.each([
    '',
    ' ',
    '^',
    '1.2.3.4',
    '01',
    '1..2',
    '||',
    '1 ||',
    '$(x)',
    '../x',
    'a b',
    '@1',
    'é',
    '1;2',
    '^1 && 2',
  ])('not the range %j', (range) => {
    expect(isRange(range)).toBe(false);
  });

  test('no range takes long to be judged', () => {
    const startedAt = performance.now();
    for (const piece of ['1 ', '^1 || ', '1.', 'x-', '1.2.3-a.', '* - ']) {
      for (let length = 1; length < 100; length++) isRange(`${piece.repeat(length)}!`);
    }
    // Milliseconds in truth; a pattern that goes astray takes minutes.
    expect(performance.now() - startedAt).toBeLessThan(5000);
  });

  test('no name is a path', () => {
    for (const name of ['a/../b', '@a/..', '@../a', 'a\\b', 'a\0', '..', '.', 'con/../x'])
      expect(isPackageName(name)).toBe(false);
  });
});

describe('[MC-10] packages that are wanted together', () => {
  test('each once, by name', () => {
    const specs = ['zod', '@a/b@1', 'zod@3', 'ms'].map(parsePackageSpec);
    expect(mergeSpecs(specs)).toEqual(['@a/b@1', 'ms', 'zod@3'].map(parsePackageSpec));
  });

  test('but not in two versions', () => {
    expect(() => mergeSpecs(['zod@3', 'zod@4'].map(parsePackageSpec))).toThrow(/zod .* 3 and 4/);
  });

  test('and only if they are packages', () => {
    expect(() => mergeSpecs([{ name: '../x', range: undefined }])).toThrow(/no name/);
  });
});

test('what is quoted is short and plain', () => {
  expect(quoted('x'.repeat(1000)).length).toBeLessThan(100);
  expect(quoted('a\u001b[2J\u202e\u009b\n')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
});
