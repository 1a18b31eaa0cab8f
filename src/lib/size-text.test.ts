import { expect, test } from 'vitest';
import { toSizeText } from './size-text.ts';

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [29_126_484, '29.1 MB'],
  [504_000_000, '504 MB'],
  [999_700_000, '1.0 GB'],
  [1_250_000_000, '1.3 GB'],
  [5_000_000_000_000_000, '5000 TB'],
])('%i bytes are %s', (bytes, text) => {
  expect(toSizeText(bytes)).toBe(text);
});
