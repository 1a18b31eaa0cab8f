import { expect, test } from 'vitest';
import { printable } from './printable.ts';

test('[MC-04] what a person decides upon is one line that hides nothing', () => {
  const hostile = 'a\nAllowed by the operator\u202e\u200b\0 \u001b[2J';
  expect(printable(hostile)).toBe('a\ufffdAllowed by the operator\ufffd\ufffd\ufffd \ufffd[2J');
  expect(printable('x'.repeat(10_000)).length).toBeLessThan(400);
});
