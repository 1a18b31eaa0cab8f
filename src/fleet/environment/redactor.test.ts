import { describe, expect, test } from 'vitest';
import { Redactor } from './redactor.ts';
import { Secret } from './secret.ts';

const KEY = 'sk-secret-0123456789';
const all = (redactor: Redactor, pieces: readonly string[]): string =>
  Buffer.concat([...pieces.map((piece) => redactor.push(Buffer.from(piece))), redactor.flush()]).toString();

describe('redactor', () => {
  test.each([
    ['in one piece', [`a ${KEY} b`], 'a [secret] b'],
    ['twice', [`${KEY}${KEY}`], '[secret][secret]'],
    ['byte by byte', Array.from(`x${KEY}y`), 'x[secret]y'],
    ['cut anywhere', [`x${KEY.slice(0, 7)}`, KEY.slice(7)], 'x[secret]'],
    ['only its beginning', [`x${KEY.slice(0, 7)}`], `x${KEY.slice(0, 7)}`],
    ['a beginning within a beginning', [`sk-sk-secret-`, `0123456789`], 'sk-[secret]'],
    ['nothing of it', ['abc', 'def'], 'abcdef'],
  ])('[FL-08] %s', (_, pieces, expected) => {
    expect(all(new Redactor([new Secret(KEY)]), pieces)).toBe(expected);
  });

  test('[FL-08] bytes that are no text stay as they are', () => {
    const redactor = new Redactor([new Secret(KEY)]);
    const bytes = Buffer.from([0xff, 0x00, 0xfe, 0x73]);
    expect(Buffer.concat([redactor.push(bytes), redactor.flush()])).toEqual(bytes);
  });

  test('short words are no secrets', () => {
    expect(all(new Redactor([new Secret('true')]), ['true story'])).toBe('true story');
    const whole = new Redactor([new Secret(KEY)]).mask(Buffer.from(`a ${KEY}`));
    expect(Buffer.from(whole).toString()).toBe('a [secret]');
  });
});
