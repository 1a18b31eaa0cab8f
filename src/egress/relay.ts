import type { Duplex } from 'node:stream';
import { messageOf } from '../core/errors.ts';
import type { Exec, ExecEvent } from '../core/exec.ts';
import type { Log } from '../core/log.ts';
import { FrameReader, encodeFrame, type Frame } from '../lib/frames.ts';
import { CellConnection } from './cell-connection.ts';

/** What `guest/egress.pl` sends at most in one frame. */
const LONGEST_PAYLOAD = 16 * 1024;
export const MOST_CONNECTIONS = 256;

export interface RelayParts {
  /** `guest/egress.pl`, running in the cell. */
  readonly exec: Exec;
  readonly log: Log;
  /** It listens now. */
  onReady(): void;
  accept(connection: Duplex): void;
}

/**
 * Our side of `guest/egress.pl`: makes connections of its frames.
 * SECURITY: a program of the cell can pretend to be it. Whatever comes, it gets connections to the gate and nothing
 * more; whatever makes no sense ends the relay, and with it only this cell's way out.
 */
export class Relay {
  readonly #parts: RelayParts;
  readonly #reader = new FrameReader(LONGEST_PAYLOAD);
  readonly #connections = new Map<number, CellConnection>();
  readonly #closed = Promise.withResolvers<undefined>();
  #isOver = false;
  #lastId = 0;

  constructor(parts: RelayParts) {
    this.#parts = parts;
  }

  /** Resolves when the program has ended, for whatever reason, or after `close`. */
  async run(): Promise<void> {
    await Promise.race([this.#readAll(), this.#closed.promise]);
    this.#isOver = true;
    for (const connection of this.#connections.values()) connection.receiveReset();
    this.#connections.clear();
  }

  /** The program ends with its input. */
  close(): void {
    this.#parts.exec.closeStdin();
    this.#closed.resolve(undefined);
  }

  async #readAll(): Promise<void> {
    const { exec, log } = this.#parts;
    try {
      for await (const event of exec.events) {
        if (!this.#take(event)) await exec.kill('cancelled');
      }
    } catch (error) {
      log.debug({ reason: messageOf(error) }, 'relay lost');
    }
  }

  /** Says whether it could be understood. What comes after nonsense, until the program is dead, is not even looked at. */
  #take(event: ExecEvent): boolean {
    if (event.type !== 'stdout' || this.#isOver) return true;
    try {
      for (const frame of this.#reader.push(event.bytes)) this.#handle(frame);
      return true;
    } catch (error) {
      this.#parts.log.warn({ reason: messageOf(error) }, 'relay refused');
      this.#closed.resolve(undefined);
      this.#isOver = true;
      return false;
    }
  }

  #handle({ type, id, payload }: Frame): void {
    if (type === 'R') this.#parts.onReady();
    else if (type === 'N') this.#open(id);
    else if (type === 'D') this.#connections.get(id)?.receive(payload);
    else if (type === 'E') this.#connections.get(id)?.receiveEnd();
    else if (type === 'C') this.#connections.get(id)?.receiveCredit(readCredit(payload));
    else if (type === 'X') this.#connections.get(id)?.receiveReset();
    else throw new RangeError(`a frame of type ${JSON.stringify(type)}`);
  }

  #open(id: number): void {
    // SECURITY: numbers only go up, so that nothing that is still under way can meet another connection.
    if (id <= this.#lastId) throw new RangeError('a connection with a number that was used before');
    this.#lastId = id;
    if (this.#connections.size >= MOST_CONNECTIONS) {
      this.#send('X', id);
      return;
    }
    const connection = new CellConnection((type, payload) => this.#send(type, id, payload));
    connection.once('close', () => this.#connections.delete(id));
    this.#connections.set(id, connection);
    this.#parts.accept(connection);
  }

  #send(type: string, id: number, payload?: Uint8Array): void {
    if (!this.#isOver) this.#parts.exec.write(encodeFrame(type, id, payload));
  }
}

function readCredit(payload: Uint8Array): number {
  if (payload.length !== 4) throw new RangeError(`credit of ${payload.length} bytes`);
  return new DataView(payload.buffer, payload.byteOffset, 4).getUint32(0);
}
