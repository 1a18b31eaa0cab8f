import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { pump } from './pump.ts';

/** A reader that takes one piece and then waits to be told to go on. */
class Stopped extends Writable {
  readonly pieces: Buffer[] = [];
  #go: () => void = () => {};

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.pieces.push(piece);
    this.#go = done;
  }

  go(): void {
    this.#go();
  }
}

const openEnded = (): Readable => new Readable({ highWaterMark: 1, read: () => {} });

test('[RS-15] a sender of single bytes does not fill us with pieces while nobody reads', async () => {
  const [from, to] = [openEnded(), new Stopped()];
  const pumping = pump(from, to);
  const bytes = Array.from({ length: 10_000 }, (_, index) => index % 256);
  for (const byte of bytes) {
    from.push(Buffer.of(byte));
    if (byte === 0) await turn();
  }
  await turn();
  expect(to.pieces.length).toBe(1);
  expect(to.writableLength).toBeLessThanOrEqual(256);
  from.push(null);
  to.go();
  await turn();
  // The rest comes as one.
  expect(to.pieces.length).toBe(2);
  to.go();
  await pumping;
  expect(Buffer.concat(to.pieces)).toEqual(Buffer.from(bytes));
  expect(to.writableEnded).toBe(true);
});

test('[RS-15] who is cut off is not taken for one that has ended', async () => {
  const [from, to] = [openEnded(), new Stopped()];
  const pumping = pump(from, to);
  from.push(Buffer.from('part'));
  await turn();
  to.go();
  from.destroy();
  await pumping;
  expect([to.pieces.length, to.writableEnded]).toEqual([1, false]);
});

test('[RS-15] nothing more is read for a reader that is gone', async () => {
  const [from, to] = [openEnded(), new Stopped()];
  const pumping = pump(from, to);
  from.push(Buffer.from('first'));
  await turn();
  to.destroy();
  to.go();
  await once(to, 'close');
  from.push(Buffer.from('second'));
  await pumping;
  expect(to.pieces.length).toBe(1);
});
