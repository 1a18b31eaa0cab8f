import { expect, test } from 'vitest';
import { readVerdict } from './agent-words.ts';

test.each([
  ['HOTCELL: done', { kind: 'done' }],
  ['I did it.\n\nHOTCELL: done\n', { kind: 'done' }],
  ['**HOTCELL: done**', { kind: 'done' }],
  ['```\nHOTCELL: blocked - no network\n```', { kind: 'blocked', reason: 'no network' }],
  ['> `hotcell: ask — red or blue?`', { kind: 'ask', reason: 'red or blue?' }],
  ['HOTCELL: continue', { kind: 'continue', reason: '' }],
  ['It needs a key.\nHOTCELL: blocked', { kind: 'blocked', reason: 'It needs a key.\nHOTCELL: blocked' }],
  ['HOTCELL: blocked - first\nHOTCELL: done', { kind: 'done' }],
])('[FL-03] the end of %j', (words, verdict) => {
  expect(readVerdict(words)).toEqual(verdict);
});

test.each(['', 'done', 'HOTCELL: maybe', 'HOTCELL: doner', `HOTCELL: blocked\n${'more\n'.repeat(6)}`])(
  '[FL-03] %j says nothing of the kind',
  (words) => {
    expect(readVerdict(words)).toBeUndefined();
  },
);

test('[FL-03] a line without end is read in no time', () => {
  expect(readVerdict(`HOTCELL: blocked ${'* '.repeat(1_000_000)}`)?.kind).toBe('blocked');
});
