import { describe, expect, test } from 'vitest';
import { FrameReader, encodeFrame } from './frames.ts';

const LONGEST = 1024;

describe('a frame', () => {
  test('[RS-15] is a type, a number, a length and the bytes', () => {
    expect([...encodeFrame('D', 0x01020304, Uint8Array.of(0, 255))]).toEqual([
      0x44, 1, 2, 3, 4, 0, 0, 0, 2, 0, 255,
    ]);
  });

  test('[RS-15] is read as it was written, however its bytes come', () => {
    const payload = Uint8Array.from({ length: LONGEST }, (_, index) => index % 256);
    const bytes = [encodeFrame('N', 0xffffffff), encodeFrame('D', 7, payload), encodeFrame('E', 7)];
    const stream = bytes.flatMap((frame) => [...frame]);
    for (const size of [1, 2, 8, 9, 10, 100, stream.length]) {
      const reader = new FrameReader(LONGEST);
      const frames = [];
      for (let at = 0; at < stream.length; at += size) {
        frames.push(...reader.push(Uint8Array.from(stream.slice(at, at + size))));
      }
      expect(frames).toEqual([
        { type: 'N', id: 0xffffffff, payload: new Uint8Array() },
        { type: 'D', id: 7, payload },
        { type: 'E', id: 7, payload: new Uint8Array() },
      ]);
    }
  });

  test('[RS-15] that is longer than agreed is an error before its bytes are there', () => {
    const header = encodeFrame('D', 1, new Uint8Array(LONGEST + 1)).slice(0, 9);
    expect(() => [...new FrameReader(LONGEST).push(header)]).toThrow(RangeError);
  });

  test('[RS-15] keeps nothing alive of what came with it', () => {
    const chunk = Buffer.concat([encodeFrame('D', 1, Uint8Array.of(1)), Buffer.alloc(60_000)]);
    const [frame] = new FrameReader(LONGEST).push(chunk);
    expect(frame?.payload.buffer.byteLength).toBe(1);
  });
});
