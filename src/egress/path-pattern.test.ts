import { describe, expect, test } from 'vitest';
import { isUnambiguous, matchesPath, normalPath, parsePathPattern } from './path-pattern.ts';

/** What the gate does with a path as a program writes it. */
const passes = (pattern: string, path: string): boolean => {
  const normal = normalPath(path);
  return isUnambiguous(normal) && matchesPath(parsePathPattern(pattern) ?? 'no pattern', normal);
};

describe('a path pattern', () => {
  test.each([
    ['/', '/'],
    ['/a', '/a'],
    ['/a/*', '/a/'],
    ['/a/*', '/a/b/c'],
    ['/a*', '/a'],
    ['/*', '/'],
    ['/*/c', '/a/b/c'],
    ['/a/*/c/*', '/a/b/c/d'],
    ['/a/**', '/a/b'],
    ['/*.json', '/a/b.json'],
    ['/a/*', '/a//b'],
    ['/web/http://*', '/web/http://example.org/'],
    ['/a b', '/a%20b'],
    ['/ä', '/%C3%A4'],
    ['/group%2Fproject/*', '/group%2Fproject/issues'],
    ['/a/*', '/a/100%25'],
    ['/a/*', '/a/100%'],
    ['/a/*', '/a/..b/.c/d..'],
    ['/a/*', '/a/b%2Fc'],
    ['/a/*', '/a/%C3%A4'],
    ['/a/*', '/a/../a/b'],
    ['/a/*', '/x/%2e%2E/a/b'],
    ['/a/*', '/x\\..\\a\\b'],
  ])('[MC-04] %s covers %s', (pattern, path) => {
    expect(passes(pattern, path)).toBe(true);
  });

  test.each([
    ['/', '/a'],
    ['/a', '/a/'],
    ['/a', '/A'],
    ['/a', '/ab'],
    ['/a', '/%61'],
    ['/a/*', '/a'],
    ['/a/*', '/b/a/c'],
    ['/a/*', '//a/b'],
    ['/a/*/c', '/a//c'],
    ['/ab*ba', '/aba'],
    ['/*.json', '/a.json/b'],
    ['/a/*', '/a/../b'],
    ['/a/*', '/a/./../b'],
    ['/a/*', '/a/..'],
    ['/a/*', '/a//../../b'],
    ['/a/*', '/a/%2e%2e/b'],
    ['/a/*', '/a/.%2E/b'],
    ['/a/*', '/a/%2e%2e%2fb'],
    ['/a/*', '/a/..%2fb'],
    ['/a/*', '/a/..%5cb'],
    ['/a/*', '/a/x%2f..%2f..%2fb'],
    ['/a/*', '/a/%252e%252e/b'],
    ['/a/*', '/a/..%252fb'],
    ['/a/*', '/a/%25252e%25252e%25252fb'],
    ['/a/*', '/a\\..\\b'],
    ['/a/*', '/a/..\\b'],
    ['/a/*', '/a/..;/b'],
    ['/a/*', '/a/..;x=1/b'],
    ['/a/*', '/a/.;/b'],
    ['/a/*', '/a/%2e%2e;/b'],
    ['/a/*', '/a/..%3b/b'],
    ['/a/*', '/a/%c0%ae%c0%ae/b'],
    ['/a/*', '/a/%e0%80%ae%e0%80%ae/b'],
    ['/a/*', '/a/%ff'],
    ['/a/*.json', '/a/b%00.json'],
    ['/a/*', '/a/.%0a./b'],
    ['/a/*', '/a/.%09./b'],
  ])('[MC-04] %s does not cover %s', (pattern, path) => {
    expect(passes(pattern, path)).toBe(false);
  });

  test.each([
    '',
    'a',
    '*',
    '?',
    'http://a.example/',
    '/a?b',
    '/a#b',
    '/a\\b',
    '/a/../b',
    '/a/%2e%2e/b',
    '/a/..',
    '/\0',
  ])('[MC-04] is not %j', (pattern) => {
    expect(parsePathPattern(pattern)).toBeUndefined();
  });

  test('[MC-04] covers nothing that would have to be decoded without end', () => {
    expect(passes('/a/*', `/a/%${'25'.repeat(3)}41`)).toBe(true);
    expect(passes('/a/*', `/a/%${'25'.repeat(8000)}41`)).toBe(false);
  });

  test('[MC-04] with many stars takes no longer than others', () => {
    const pattern = `/${'*a'.repeat(1000)}b`;
    const started = performance.now();
    expect(matchesPath(pattern, `/${'a'.repeat(16_000)}`)).toBe(false);
    // A regular expression would be at it for years.
    expect(performance.now() - started).toBeLessThan(5000);
  });
});
