import { expect, test } from 'vitest';
import { LineSplitter } from './line-splitter.ts';

function split(pieces: readonly string[], longest = 100): (string | undefined)[] {
  const splitter = new LineSplitter(longest);
  const lines = pieces.flatMap((piece) => [...splitter.push(Buffer.from(piece))]);
  return [...lines, splitter.end()];
}

test.each([
  ['whole', ['a\nb\n'], ['a', 'b', undefined]],
  ['byte by byte', Array.from('ä\nb'), ['ä', 'b']],
  ['empty ones', ['\n\nx\n'], ['', '', 'x', undefined]],
  ['too long', [`${'x'.repeat(101)}\nshort\n`], ['short', undefined]],
  ['too long in pieces', ['x'.repeat(60), 'x'.repeat(60), '\nshort'], ['short']],
  ['the end too long', ['a\n', 'x'.repeat(101)], ['a', undefined]],
])('lines: %s', (_, pieces, expected) => {
  expect(split(pieces)).toEqual(expected);
});
