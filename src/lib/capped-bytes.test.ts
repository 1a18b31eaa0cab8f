import { describe, expect, test } from 'vitest';
import { CappedBytes, wholeCharacters } from './capped-bytes.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

function keep(limit: number, ...chunks: Uint8Array[]): CappedBytes {
  const bytes = new CappedBytes(limit);
  for (const chunk of chunks) bytes.push(chunk);
  return bytes;
}

describe('the cap', () => {
  test.each([
    [9, { text: 'abcdefghi', total: 9, truncated: false }],
    [10, { text: 'abcdefghij', total: 10, truncated: false }],
    [11, { text: 'abcdefghij', total: 11, truncated: true }],
  ])('[CX-06] %i bytes with room for ten', (length, expected) => {
    expect(describeBytes(keep(10, encode('abcdefghijk'.slice(0, length))))).toEqual(expected);
  });

  test('[CX-06] what is cut does not depend on how the stream was chunked', () => {
    const chunks = 'abcdefghijk'.split('').map((letter) => encode(letter));
    expect(describeBytes(keep(10, ...chunks))).toEqual({ text: 'abcdefghij', total: 11, truncated: true });
  });

  test('[CX-06] everything past the cap is counted', () => {
    expect(keep(1, encode('ab'), encode('cde')).total).toBe(5);
  });

  test('a kept slice is a copy: it neither pins nor follows the buffer it came from', () => {
    const slab = new Uint8Array(64 * 1024).fill('a'.charCodeAt(0));
    const bytes = keep(4, slab.subarray(0, 3));
    slab.fill('z'.charCodeAt(0));
    expect(bytes.text()).toBe('aaa');
  });
});

const CHARACTERS = ['é', '€', '😀'] as const;
const CUTS = CHARACTERS.flatMap((character) =>
  Array.from({ length: encode(character).length }, (_, cut) => ({ character, cut })),
);

describe('characters', () => {
  test.each(CUTS)('[CX-06] $character cut after $cut of its bytes is dropped', ({ character, cut }) => {
    expect(keep(2 + cut, encode(`ab${character}c`)).text()).toBe('ab');
  });

  test.each(CHARACTERS)('[CX-06] %s that just fits is kept', (character) => {
    const text = `ab${character}`;
    expect(keep(encode(text).length, encode(`${text}c`)).text()).toBe(text);
  });

  test.each(CHARACTERS)('[CX-06] %s split between two chunks is whole again', (character) => {
    const bytes = encode(character);
    expect(keep(100, bytes.subarray(0, 1), bytes.subarray(1)).text()).toBe(character);
  });

  test.each([
    ['a lone continuation byte', [0x61, 0x80]],
    ['five continuation bytes', [0x80, 0x80, 0x80, 0x80, 0x80]],
    ['a byte that never occurs', [0x61, 0xff, 0x62]],
  ])('invalid text stays replaced, not dropped: %s', (_what, values) => {
    const text = keep(values.length, Uint8Array.from([...values, 0x7a])).text();
    expect(text).toBe(new TextDecoder().decode(Uint8Array.from(values)));
    expect(text).toContain('\uFFFD');
  });

  test('an unfinished character at the real end was written so, and is shown as such', () => {
    expect(keep(100, Uint8Array.from([0x61, 0xe2, 0x82])).text()).toBe('a\uFFFD');
  });

  test('nothing has no characters', () => {
    expect(wholeCharacters(new Uint8Array())).toBe(0);
  });
});

function describeBytes(bytes: CappedBytes): { text: string; total: number; truncated: boolean } {
  return { text: bytes.text(), total: bytes.total, truncated: bytes.truncated };
}
