import { describe, expect, test } from 'vitest';
import { HeadTail } from './head-tail.ts';

describe('the beginning and the end of a stream', () => {
  test.each([1, 7, 64, 1000])(
    '[RS-06] in pieces of %i bytes: all of it, or both ends and the exact rest',
    (size) => {
      for (const total of [0, 1, 99, 100, 101, 150, 5000]) {
        const whole = Array.from({ length: total }, (_, index) =>
          String.fromCharCode(97 + (index % 26)),
        ).join('');
        const kept = new HeadTail(100);
        for (let at = 0; at < total; at += size) kept.push(Buffer.from(whole.slice(at, at + size)));
        const { text, cutBytes } = kept.text(total);
        const cut = `\n[… ${total - 100} bytes cut …]\n`;
        const expected = total <= 100 ? whole : `${whole.slice(0, 50)}${cut}${whole.slice(-50)}`;
        expect([text, cutBytes]).toEqual([expected, Math.max(0, total - 100)]);
      }
    },
  );

  test('[RS-06] no character is cut in two', () => {
    const whole = Buffer.from('€'.repeat(100));
    const kept = new HeadTail(100);
    kept.push(whole);
    const { text, cutBytes } = kept.text(300);
    expect(text).toBe(`${'€'.repeat(16)}\n[… 204 bytes cut …]\n${'€'.repeat(16)}`);
    expect(cutBytes).toBe(204);
  });

  test('[RS-06] what was missing before is part of the cut, and is no beginning', () => {
    const kept = new HeadTail(10);
    kept.push(Buffer.from('ab'));
    kept.gap();
    kept.push(Buffer.from('cdefghijklmnop'));
    expect(kept.text(100)).toEqual({ text: 'ab\n[… 90 bytes cut …]\nijklmnop', cutBytes: 90 });
    const nothing = new HeadTail(10);
    nothing.gap();
    expect(nothing.text(5)).toEqual({ text: '[… 5 bytes cut …]\n', cutBytes: 5 });
    expect(nothing.text(0)).toEqual({ text: '', cutBytes: 0 });
  });
});
