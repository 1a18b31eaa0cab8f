import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { ExecEvent } from '../../core/exec.ts';
import { EventQueue } from '../../lib/event-queue.ts';
import type { FifoKit } from './fifo-kit.ts';

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;
const STATUS_KEPT = 1024;

/** Our ends of the FIFOs of one exec. */
export class Channel {
  readonly queue = new EventQueue<ExecEvent>();
  readonly #kit: FifoKit;
  readonly #stdin: Socket;
  readonly #readers = new Map<'out' | 'err' | 'status', Socket>();
  readonly #hold: number;
  #held = true;
  #status = '';
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
    this.ended = Promise.all(ends).then(() => undefined);
  }

  #listen(name: 'out' | 'err' | 'status', reader: Socket): Promise<void> {
    reader.on('error', () => {});
    reader.on('data', (bytes: Buffer) => {
      if (name === 'status') this.#status = (this.#status + bytes.toString('latin1')).slice(-STATUS_KEPT);
      else this.queue.push({ type: name === 'out' ? 'stdout' : 'stderr', bytes });
    });
    return new Promise((resolve) => reader.on('close', () => resolve()));
  }

  #forOutput(action: (reader: Socket) => void): void {
    for (const [name, reader] of this.#readers) if (name !== 'status') action(reader);
  }

  /** The last words of the init in the cell. Hostile: the program can write there too. */
  get status(): string {
    return this.#status;
  }

  write(bytes: Uint8Array): void {
    if (!this.#stdin.destroyed) this.#stdin.write(bytes);
  }

  /** The program reads the end of its input once everything written has gone out. */
  closeStdin(): void {
    if (this.#stdin.destroyed) return;
    this.#stdin.write('', () => this.#stdin.destroy());
  }

  /** The far ends, for a process that inherits its streams instead of opening them. The caller closes them. */
  openFarEnds(): [stdin: number, stdout: number, stderr: number] {
    return [
      openSync(this.#kit.path('in'), O_RDONLY),
      openSync(this.#kit.path('out'), O_WRONLY),
      openSync(this.#kit.path('err'), O_WRONLY),
    ];
  }

  /** Lets the init of the cell go; it stays until then, so that its cgroup can still be read. */
  letGo(): void {
    if (!this.#held) return;
    this.#held = false;
    closeSync(this.#hold);
  }

  /**
   * Brings the end of the streams about when their writers are known to be dead or never came: a reader that has
   * never seen a writer would wait for ever, so be that writer for a moment.
   */
  hangUp(): void {
    this.letGo();
    this.#stdin.destroy();
    for (const [name, reader] of this.#readers) {
      if (!reader.destroyed) closeSync(openSync(this.#kit.path(name), O_WRONLY | O_NONBLOCK));
    }
    this.#forOutput((reader) => reader.resume());
  }
}
