import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { StreamSplitter, listen } from './attached-stream.ts';

/** A frame as the engine sends it. */
function frame(stream: 1 | 2, text: string): Buffer {
  const header = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
  header.writeUInt32BE(text.length, 4);
  return Buffer.concat([header, Buffer.from(text, 'latin1')]);
}

/** What the splitter makes of the pieces: the bytes of each stream, and no empty piece. */
function split(...chunks: readonly Buffer[]): { stdout: string; stderr: string } {
  const splitter = new StreamSplitter();
  const texts = { stdout: '', stderr: '' };
  for (const chunk of chunks) {
    splitter.push(chunk, (stream, bytes) => {
      expect(bytes.length).toBeGreaterThan(0);
      texts[stream] += bytes.toString('latin1');
    });
  }
  return texts;
}

const WHOLE = Buffer.concat([
  frame(1, 'one'),
  frame(2, 'two!'),
  frame(1, ''),
  frame(2, ''),
  frame(1, 'three'),
]);
const TEXTS = { stdout: 'onethree', stderr: 'two!' };

describe('the stream of an engine', () => {
  test('is cut into the two of the container', () => {
    expect(split(WHOLE)).toEqual(TEXTS);
  });

  test('may come in pieces that are cut anywhere', () => {
    for (let cut = 0; cut <= WHOLE.length; cut++)
      expect(split(WHOLE.subarray(0, cut), WHOLE.subarray(cut))).toEqual(TEXTS);
  });

  test('may come in pieces of any size', () => {
    for (let size = 1; size < WHOLE.length; size++) {
      const count = Math.ceil(WHOLE.length / size);
      expect(
        split(...Array.from({ length: count }, (_, at) => WHOLE.subarray(at * size, (at + 1) * size))),
      ).toEqual(TEXTS);
    }
  });

  test('keeps every byte', () => {
    const bytes = String.fromCodePoint(...Array.from({ length: 256 }, (_, byte) => byte));
    expect(split(frame(1, bytes), frame(2, bytes))).toEqual({ stdout: bytes, stderr: bytes });
  });

  test('passes a long frame on as it comes, without keeping it', () => {
    const splitter = new StreamSplitter();
    const sizes: number[] = [];
    const header = Buffer.from([1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    splitter.push(header, () => expect.unreachable());
    for (let count = 0; count < 3; count++)
      splitter.push(Buffer.alloc(1000), (_stream, bytes) => sizes.push(bytes.length));
    expect(sizes).toEqual([1000, 1000, 1000]);
  });
});

describe('listening', () => {
  test('gives the pieces, and ends when the stream ends', async () => {
    const stream = new PassThrough();
    const pieces: string[] = [];
    const ended = listen(stream, (source, bytes) => pieces.push(`${source} ${bytes.toString()}`));
    stream.write(WHOLE);
    stream.end();
    await ended;
    expect(pieces).toEqual(['stdout one', 'stderr two!', 'stdout three']);
    expect(stream.destroyed).toBe(true);
  });

  test.each([
    ['breaks', (stream: PassThrough) => stream.destroy(new Error('ECONNRESET'))],
    ['is closed', (stream: PassThrough) => stream.destroy()],
  ])('ends when the stream %s, and is no error', async (_what, end) => {
    const stream = new PassThrough();
    const ended = listen(stream, () => {});
    stream.write(WHOLE.subarray(0, 5));
    end(stream);
    await expect(ended).resolves.toBeUndefined();
  });
});
