import { Duplex } from 'node:stream';

/** How much may be under way in each direction of one connection. `guest/egress.pl` knows this number and the next, too. */
export const WINDOW_BYTES = 64 * 1024;
/** SECURITY: what a frame costs at least, or a window full of single bytes would take a hundred times the memory. */
const LEAST_COST = 512;
const LONGEST_PIECE = 16 * 1024;
/** Credit is given back in portions, so that small pieces do not double the frames. */
const PORTION_BYTES = WINDOW_BYTES / 4;

const cost = (length: number): number => Math.max(length, LEAST_COST);

type Send = (type: 'D' | 'E' | 'X' | 'C', payload?: Uint8Array) => void;

/**
 * One connection of a program in a cell. A slow reader on either end costs waiting, not memory: each end sends only
 * as much as the other has room for.
 */
export class CellConnection extends Duplex {
  readonly #send: Send;
  /** What we may still send, and what the cell may. */
  #credit = WINDOW_BYTES;
  #granted = WINDOW_BYTES;
  #owed = 0;
  #pending: { rest: Uint8Array; done: () => void } | undefined;
  #isOver = false;
  #hasEnded = false;

  constructor(send: Send) {
    // SECURITY: a reader's room of one byte: there is new credit when all was read, and not while little pieces pile up.
    super({ allowHalfOpen: true, readableHighWaterMark: 1, writableHighWaterMark: LONGEST_PIECE });
    this.#send = send;
    // Whoever uses it looks at 'close'.
    this.on('error', () => {});
  }

  /** SECURITY: throws when the cell sends more than it may; whoever does that is not our program. */
  receive(bytes: Uint8Array): void {
    this.#granted -= cost(bytes.length);
    if (this.#hasEnded) throw new RangeError('more bytes after the last one');
    if (this.#granted < 0) throw new RangeError('more bytes than there was credit for');
    this.#owed += cost(bytes.length);
    if (this.destroyed || bytes.length === 0) return;
    if (this.push(bytes)) this.#pay();
  }

  receiveEnd(): void {
    this.#hasEnded = true;
    this.push(null);
  }

  /** SECURITY: nobody may have more credit than the window, or our writes would pile up on the way. */
  receiveCredit(bytes: number): void {
    this.#credit += bytes;
    if (this.#credit > WINDOW_BYTES) throw new RangeError('more credit than was used');
    this.#flush();
  }

  /** The other end is gone, so there is nobody to tell. */
  receiveReset(): void {
    this.#isOver = true;
    this.destroy();
  }

  override _read(): void {
    this.#pay();
  }

  #pay(): void {
    if (this.#owed < PORTION_BYTES || this.destroyed) return;
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(this.#owed);
    this.#granted += this.#owed;
    this.#owed = 0;
    this.#send('C', payload);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#pending = { rest: chunk, done };
    this.#flush();
  }

  #flush(): void {
    const pending = this.#pending;
    if (pending === undefined || this.destroyed) return;
    while (pending.rest.length > 0) {
      if (this.#credit < LEAST_COST) return;
      const piece = pending.rest.subarray(0, Math.min(this.#credit, LONGEST_PIECE));
      pending.rest = pending.rest.subarray(piece.length);
      this.#credit -= cost(piece.length);
      this.#send('D', piece);
    }
    this.#pending = undefined;
    pending.done();
  }

  override _final(done: () => void): void {
    this.#send('E');
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const isWhole = this.readableEnded && this.writableFinished;
    if (!isWhole && !this.#isOver) this.#send('X');
    this.#isOver = true;
    this.#pending?.done();
    this.#pending = undefined;
    done(error);
  }
}
