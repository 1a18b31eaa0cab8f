import { expect, test } from 'vitest';
import { cutMiddle } from './cut-text.ts';

const mark = (cut: number): string => `<${cut}>`;

test('[MC-01] a short text stays whole', () => {
  expect(cutMiddle('abc', 3, mark)).toEqual({ text: 'abc', cutBytes: 0 });
});

test('[MC-01] a long text keeps head and tail, and says how much is missing', () => {
  expect(cutMiddle(`head${'.'.repeat(100)}tail`, 8, mark)).toEqual({ text: 'head<100>tail', cutBytes: 100 });
});

test.each(['é', '€', '😀'])('[MC-01] no %s is cut in two', (character) => {
  for (const keep of [10, 11, 12, 13, 14, 15, 16, 17]) {
    const all = character.repeat(50);
    const { text, cutBytes } = cutMiddle(all, keep, () => '');
    expect(text).not.toContain('\ufffd');
    expect(Buffer.byteLength(text) + cutBytes).toBe(Buffer.byteLength(all));
    expect(cutBytes).toBeGreaterThan(0);
  }
});
