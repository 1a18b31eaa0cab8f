import type { Readable, Writable } from 'node:stream';

/**
 * Carries bytes until there are no more, and ends the other side then. Each piece waits for the one before it.
 * SECURITY: streams count bytes, not pieces. With `pipe`, a sender of single bytes and a reader that has stopped would
 * have us keep tens of thousands of pieces, each of them a hundred times larger than what is in it.
 */
export async function pump(from: Readable, to: Writable): Promise<void> {
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- One piece after the other.
    const piece = await nextPiece(from);
    if (piece === undefined || to.destroyed) break;
    // oxlint-disable-next-line no-await-in-loop -- As above.
    await new Promise<void>((resolve) => to.write(piece, () => resolve()));
  }
  // Whoever was cut off has not ended.
  if (from.readableEnded) to.end();
}

/** What has come, in one piece; undefined when the stream has ended or is gone. */
export async function nextPiece(stream: Readable): Promise<Buffer | undefined> {
  for (;;) {
    if (stream.destroyed || stream.readableEnded) return undefined;
    // All of it: who asks for a number of bytes makes the stream's buffer that large.
    const piece: unknown = stream.read();
    if (Buffer.isBuffer(piece)) return piece;
    // oxlint-disable-next-line no-await-in-loop -- Until there is something.
    await new Promise<void>((resolve) => {
      const names = ['readable', 'end', 'close'] as const;
      const wake = (): void => {
        for (const name of names) stream.off(name, wake);
        resolve();
      };
      for (const name of names) stream.on(name, wake);
    });
  }
}
