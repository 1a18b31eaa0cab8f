import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { ExecEvent } from '../../core/exec.ts';
import { EventQueue } from '../../lib/event-queue.ts';
import { errnoOf } from '../../lib/errno.ts';
import { sealKit, type FifoKit } from './fifo-kit.ts';
import { StatusReader, type ProgramEnd } from './outcome.ts';

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;
const FIRST_LOOK_MS = 1;
const LONGEST_LOOK_MS = 64;

/** Our ends of the FIFOs of one exec. */
export class Channel {
  readonly queue = new EventQueue<ExecEvent>();
  readonly #kit: FifoKit;
  readonly #stdin: Socket;
  readonly #readers = new Map<'out' | 'err' | 'status', Socket>();
  readonly #hold: number;
  #held = true;
  #sealed = false;
  /** The init has the far end of stdin open. Closing ours before would leave it waiting for ever. */
  #farEndOpen = false;
  #closing = false;
  #lateReaders: NodeJS.Timeout | undefined;
  #ended = false;
  readonly #status = new StatusReader();
  /** Resolves when every writer of every stream is gone. */
  readonly ended: Promise<void>;

  constructor(kit: FifoKit, streams: readonly ('out' | 'err' | 'status')[]) {
    this.#kit = kit;
    // Opened for both directions, because opening a FIFO only for writing fails until somebody reads it.
    this.#stdin = new Socket({
      fd: openSync(kit.path('in'), O_RDWR | O_NONBLOCK),
      readable: false,
      writable: true,
    });
    this.#stdin.on('error', () => {});
    this.#hold = openSync(kit.path('hold'), O_RDWR | O_NONBLOCK);
    const ends = streams.map((name) => {
      const reader = new Socket({
        fd: openSync(kit.path(name), O_RDONLY | O_NONBLOCK),
        readable: true,
        writable: false,
      });
      this.#readers.set(name, reader);
      return this.#listen(name, reader);
    });
    this.queue.onFull = () => this.#forOutput((reader) => reader.pause());
    this.queue.onDrained = () => this.#forOutput((reader) => reader.resume());
    this.ended = Promise.all(ends).then(() => {
      this.#ended = true;
      clearTimeout(this.#lateReaders);
    });
  }

  #listen(name: 'out' | 'err' | 'status', reader: Socket): Promise<void> {
    reader.on('error', () => {});
    reader.on('data', (bytes: Buffer) => {
      if (name === 'status') this.#onStatus(bytes);
      else this.queue.push({ type: name === 'out' ? 'stdout' : 'stderr', bytes });
    });
    return new Promise((resolve) => reader.on('close', () => resolve()));
  }

  #forOutput(action: (reader: Socket) => void): void {
    for (const [name, reader] of this.#readers) if (name !== 'status') action(reader);
  }

  /** How the init of the cell says that the program ended; undefined as long as it has not. */
  get programEnd(): ProgramEnd | undefined {
    return this.#status.end;
  }

  write(bytes: Uint8Array): void {
    if (!this.#stdin.destroyed) this.#stdin.write(bytes);
  }

  /** The program reads the end of its input once everything written has gone out. */
  closeStdin(): void {
    this.#closing = true;
    if (!this.#farEndOpen || this.#stdin.destroyed) return;
    this.#stdin.write('', () => {
      this.#stdin.destroy();
      this.#admitLateReaders(FIRST_LOOK_MS);
    });
  }

  /**
   * A program that opens /dev/stdin again after we have closed our end would wait for a writer, which it would not
   * with a plain pipe. So be that writer for a moment now and then: whoever waits gets in and reads the end.
   */
  #admitLateReaders(waitMs: number): void {
    if (this.#ended) return;
    this.#lateReaders = setTimeout(() => {
      touchWriteEnd(this.#kit.path('in'));
      this.#admitLateReaders(Math.min(LONGEST_LOOK_MS, waitMs * 2));
    }, waitMs);
  }

  #onStatus(bytes: Buffer): void {
    this.#status.push(bytes.toString('latin1'));
    // The first thing the init says is that it has opened its ends.
    this.#farEndIsOpen();
  }

  #farEndIsOpen(): void {
    if (this.#farEndOpen) return;
    this.#farEndOpen = true;
    if (this.#closing) this.closeStdin();
  }

  /** Lets the init of the cell go; it stays until then, so that its cgroup can still be read. */
  letGo(): void {
    if (!this.#held) return;
    this.#held = false;
    closeSync(this.#hold);
  }

  /**
   * From now on nobody opens the FIFOs, and neither do we. Precondition: every reader has seen a writer, so that it ends with
   * the last one by itself.
   */
  async seal(): Promise<void> {
    this.#sealed = true;
    await sealKit(this.#kit);
  }

  /** Leaves the far ends to whoever opens the FIFOs next. */
  detach(): void {
    this.letGo();
    this.#stdin.destroy();
    for (const reader of this.#readers.values()) reader.destroy();
  }

  /** Brings the end of the streams about when their writers are known to be dead or never came. */
  hangUp(): void {
    this.letGo();
    this.#stdin.destroy();
    if (!this.#sealed) this.touchReaders();
    this.#forOutput((reader) => reader.resume());
  }

  /** A reader that has never seen a writer would wait for ever: this is one for a moment. */
  touchReaders(): void {
    for (const [name, reader] of this.#readers) touchReader(reader, this.#kit.path(name));
  }
}

/** Does so until it is done: an error where nobody waits for the answer would end the server. */
export function touchReader(reader: Socket, path: string): void {
  if (reader.destroyed || touchWriteEnd(path)) return;
  setTimeout(() => touchReader(reader, path), LONGEST_LOOK_MS);
}

/** Opens a FIFO for writing and closes it again. False: not now, as when there are no descriptors left. */
function touchWriteEnd(path: string): boolean {
  try {
    closeSync(openSync(path, O_WRONLY | O_NONBLOCK));
    return true;
  } catch (error) {
    // Nobody has it open for reading, or somebody removed it under our feet.
    return errnoOf(error) === 'ENXIO' || errnoOf(error) === 'ENOENT';
  }
}
