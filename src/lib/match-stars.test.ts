import { expect, test } from 'vitest';
import { matchesStars } from './match-stars.ts';

test.each([
  ['', '', true],
  ['', 'a', false],
  ['*', '', true],
  ['*', 'anything', true],
  ['a', 'a', true],
  ['a', 'ab', false],
  ['a*', 'ab', true],
  ['a*', 'ba', false],
  ['*a', 'ba', true],
  ['a*a', 'a', false],
  ['a*a', 'aa', true],
  ['a*b*c', 'a-b-b-c', true],
  ['a*b*c', 'a-c', false],
  ['a**c', 'ac', true],
  ['a.c', 'abc', false],
  ['A', 'a', false],
  ['a', '*', false],
  ['a*', 'a*', true],
])('%j and %j: %s', (pattern, text, matches) => {
  expect(matchesStars(pattern, text)).toBe(matches);
});

test('[MC-04] a pattern made to keep us busy does not', () => {
  expect(matchesStars('*a'.repeat(50_000), 'a'.repeat(50_000) + 'b')).toBe(false);
});
