/** One of many streams that share a connection: a type, the number of the stream, a length, the bytes. */
export interface Frame {
  readonly type: string;
  readonly id: number;
  readonly payload: Uint8Array;
}

const HEADER_BYTES = 9;

export function encodeFrame(type: string, id: number, payload: Uint8Array = new Uint8Array()): Uint8Array {
  const frame = new Uint8Array(HEADER_BYTES + payload.length);
  const header = new DataView(frame.buffer);
  header.setUint8(0, type.charCodeAt(0));
  header.setUint32(1, id);
  header.setUint32(5, payload.length);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/** Cuts a stream of bytes into frames, however the bytes come. */
export class FrameReader {
  readonly #longestPayload: number;
  #rest = new Uint8Array();

  constructor(longestPayload: number) {
    this.#longestPayload = longestPayload;
  }

  /** SECURITY: throws when a length is absurd, because the other side could otherwise make us wait and store without end. */
  *push(bytes: Uint8Array): Generator<Frame> {
    this.#rest = joined(this.#rest, bytes);
    while (this.#rest.length >= HEADER_BYTES) {
      const header = new DataView(this.#rest.buffer, this.#rest.byteOffset, HEADER_BYTES);
      const length = header.getUint32(5);
      if (length > this.#longestPayload) throw new RangeError(`a frame of ${length} bytes`);
      const end = HEADER_BYTES + length;
      if (this.#rest.length < end) return;
      const type = String.fromCharCode(header.getUint8(0));
      // SECURITY: a copy, or one byte that somebody keeps would keep everything that came with it.
      const payload = this.#rest.slice(HEADER_BYTES, end);
      this.#rest = this.#rest.subarray(end);
      yield { type, id: header.getUint32(1), payload };
    }
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
