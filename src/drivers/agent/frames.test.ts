import { describe, expect, test } from 'vitest';
import { FrameReader, encodeFrame, type Frame } from './frames.ts';

const MiB = 1024 * 1024;

/** A header that promises so many bytes. */
function headerOf(length: number): Buffer {
  const header = Buffer.from('O\0\0\0\x07\0\0\0\0', 'latin1');
  header.writeUInt32BE(length, 5);
  return header;
}

/** What a reader makes of the pieces, with the payloads as text. */
function read(...pieces: readonly Uint8Array[]): string[] {
  const reader = new FrameReader();
  return pieces.flatMap((piece) => [...reader.push(piece)]).map(toLine);
}

const toLine = ({ type, id, payload }: Frame): string =>
  `${type} ${id} ${Buffer.from(payload).toString('latin1')}`;

describe('a frame', () => {
  test('is a type, a number, a length and the bytes', () => {
    expect(encodeFrame('I', 0x01020304, Uint8Array.of(0, 255))).toEqual(
      Buffer.from([0x49, 1, 2, 3, 4, 0, 0, 0, 2, 0, 255]),
    );
    expect(encodeFrame('E', 1)).toEqual(Buffer.from([0x45, 0, 0, 0, 1, 0, 0, 0, 0]));
  });

  test.each([
    ['nothing in it', Buffer.alloc(0)],
    ['every byte in it', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
    ['what looks like another frame in it', encodeFrame('X', 9, Buffer.from('wait=0'))],
    ['the most in it that is taken', Buffer.alloc(MiB, 'x')],
  ])('with %s is read as it was written', (_what, payload) => {
    const [frame, ...more] = new FrameReader().push(encodeFrame('O', 0xffffffff, payload));
    expect([frame?.type, frame?.id]).toEqual(['O', 0xffffffff]);
    expect(payload.equals(frame?.payload ?? Buffer.from('none'))).toBe(true);
    expect(more).toEqual([]);
  });

  test('is not changed by what happens to the bytes it was read from', () => {
    const bytes = encodeFrame('O', 1, Buffer.from('kept'));
    const frames = [...new FrameReader().push(bytes)];
    bytes.fill(0);
    expect(frames.map(toLine)).toEqual(['O 1 kept']);
  });
});

describe('pieces', () => {
  const whole = Buffer.concat([
    encodeFrame('O', 1, Buffer.from('one')),
    encodeFrame('R', 0),
    encodeFrame('e', 2, Buffer.from('two!')),
  ]);
  const lines = ['O 1 one', 'R 0 ', 'e 2 two!'];

  test('cut at any place give the same frames', () => {
    for (let cut = 0; cut <= whole.length; cut++)
      expect(read(whole.subarray(0, cut), whole.subarray(cut))).toEqual(lines);
  });

  test('of any size give the same frames', () => {
    for (let size = 1; size < whole.length; size++) {
      const count = Math.ceil(whole.length / size);
      const pieces = Array.from({ length: count }, (_, at) => whole.subarray(at * size, (at + 1) * size));
      expect(read(...pieces)).toEqual(lines);
    }
  });

  test('a frame comes as soon as its last byte is there, and not before', () => {
    const reader = new FrameReader();
    const first = encodeFrame('O', 1, Buffer.from('one'));
    expect([...reader.push(first.subarray(0, -1))]).toEqual([]);
    expect([...reader.push(first.subarray(-1))].map(toLine)).toEqual(['O 1 one']);
  });
});

describe('a length that no agent would send', () => {
  test.each([MiB + 1, 0x7fffffff, 0x80000000, 0xffffffff])('[SC-03] %i is refused at once', (length) => {
    expect(() => read(headerOf(length))).toThrow(`a frame of ${length} bytes`);
  });

  test('[SC-03] nothing is stored while it is only promised', () => {
    expect(() => read(headerOf(0xffffffff).subarray(0, 8))).not.toThrow();
    expect(read(headerOf(MiB), Buffer.alloc(MiB - 1))).toEqual([]);
  });

  test('[SC-03] what came before it is still read', () => {
    const seen: string[] = [];
    const bytes = Buffer.concat([encodeFrame('O', 1, Buffer.from('ok')), headerOf(0xffffffff)]);
    expect(() => {
      for (const frame of new FrameReader().push(bytes)) seen.push(toLine(frame));
    }).toThrow(RangeError);
    expect(seen).toEqual(['O 1 ok']);
  });
});
