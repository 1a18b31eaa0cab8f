/** One frame of the connection to the agent of a cell; `guest/README.md` lists the types. */
export interface Frame {
  readonly type: string;
  /** Which command it is about. */
  readonly id: number;
  readonly payload: Uint8Array;
}

const HEADER_BYTES = 9;
/** The agent sends at most 64 KiB at once. */
const LONGEST_PAYLOAD = 1024 * 1024;

export function encodeFrame(type: string, id: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  frame.write(type, 0, 1, 'latin1');
  frame.writeUInt32BE(id, 1);
  frame.writeUInt32BE(payload.length, 5);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/** Cuts a stream of bytes into frames, however the bytes come. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  /** SECURITY: throws when a length is absurd, because a cell could otherwise make us wait and store without end. */
  *push(bytes: Uint8Array): Generator<Frame> {
    this.#rest = this.#rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes]);
    while (this.#rest.length >= HEADER_BYTES) {
      const length = this.#rest.readUInt32BE(5);
      if (length > LONGEST_PAYLOAD) throw new RangeError(`a frame of ${length} bytes`);
      const end = HEADER_BYTES + length;
      if (this.#rest.length < end) return;
      const frame: Frame = {
        type: this.#rest.toString('latin1', 0, 1),
        id: this.#rest.readUInt32BE(1),
        payload: this.#rest.subarray(HEADER_BYTES, end),
      };
      this.#rest = this.#rest.subarray(end);
      yield frame;
    }
  }
}
