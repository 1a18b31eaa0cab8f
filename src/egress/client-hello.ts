/** What the first bytes of a client are: not yet enough, no TLS, or a ClientHello with or without a name in it. */
export type Hello =
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'not_tls'; readonly why: string }
  | { readonly kind: 'hello'; readonly serverName: string | undefined };

/** A ClientHello takes some hundred bytes, with keys for after quantum computers two thousand. */
export const LONGEST_HELLO = 16 * 1024;

const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const RECORD_HEADER = 5;
const MESSAGE_HEADER = 4;

/** Pure, bounded, and never throws: the bytes come out of a cell. */
export function readClientHello(bytes: Uint8Array): Hello {
  try {
    const message = joinRecords(bytes);
    if (message === undefined) {
      return bytes.length < LONGEST_HELLO
        ? { kind: 'incomplete' }
        : { kind: 'not_tls', why: 'a ClientHello without an end' };
    }
    return { kind: 'hello', serverName: readServerName(message) };
  } catch (error) {
    if (error instanceof Malformed) return { kind: 'not_tls', why: error.message };
    throw error;
  }
}

class Malformed extends Error {}

/** The body of the first handshake message, which may be spread over records; undefined while some of it is missing. */
function joinRecords(bytes: Uint8Array): Uint8Array | undefined {
  const pieces: Uint8Array[] = [];
  let held = 0;
  let needed = MESSAGE_HEADER;
  for (let at = 0; held < needed;) {
    const record = bytes.subarray(at);
    if (record[0] !== undefined && record[0] !== HANDSHAKE_RECORD) throw new Malformed('no TLS handshake');
    if (record[1] !== undefined && record[1] !== 3) throw new Malformed('an unknown version of TLS');
    if (record.length < RECORD_HEADER) return undefined;
    const length = uint(record, 3, 2);
    if (length === 0 || length > LONGEST_HELLO) throw new Malformed('a record of absurd length');
    const piece = record.subarray(RECORD_HEADER, RECORD_HEADER + length);
    pieces.push(piece);
    held += piece.length;
    if (needed === MESSAGE_HEADER && held >= MESSAGE_HEADER) needed = messageLength(Buffer.concat(pieces));
    if (piece.length < length && held < needed) return undefined;
    at += RECORD_HEADER + length;
  }
  return Buffer.concat(pieces).subarray(MESSAGE_HEADER, needed);
}

function messageLength(message: Uint8Array): number {
  if (message[0] !== CLIENT_HELLO) throw new Malformed('no ClientHello');
  const length = uint(message, 1, 3);
  if (length > LONGEST_HELLO) throw new Malformed('a ClientHello of absurd length');
  return MESSAGE_HEADER + length;
}

function readServerName(hello: Uint8Array): string | undefined {
  const fields = new Fields(hello);
  // Version and random bytes; then session, cipher suites, compression methods.
  fields.take(2 + 32);
  fields.takeCounted(1);
  fields.takeCounted(2);
  fields.takeCounted(1);
  if (fields.isEmpty) return undefined;
  const extensions = new Fields(fields.takeCounted(2));
  if (!fields.isEmpty) throw new Malformed('bytes after the extensions');
  const names: string[] = [];
  while (!extensions.isEmpty) {
    const type = extensions.takeNumber(2);
    const content = extensions.takeCounted(2);
    if (type === SERVER_NAME) names.push(readNameList(content));
  }
  // SECURITY: of two names we could take one and the server the other.
  if (names.length > 1) throw new Malformed('two server names');
  return names[0];
}

function readNameList(content: Uint8Array): string {
  const outer = new Fields(content);
  const list = new Fields(outer.takeCounted(2));
  const type = list.takeNumber(1);
  const name = Buffer.from(list.takeCounted(2)).toString('latin1');
  if (type !== 0 || !list.isEmpty || !outer.isEmpty) throw new Malformed('not exactly one server name');
  return name;
}

class Fields {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isEmpty(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(count: number): Uint8Array {
    const end = this.#at + count;
    if (end > this.#bytes.length) throw new Malformed('a field that goes beyond the end');
    const field = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return field;
  }

  takeNumber(width: number): number {
    return uint(this.take(width), 0, width);
  }

  /** A field that begins with its own length. */
  takeCounted(width: number): Uint8Array {
    return this.take(this.takeNumber(width));
  }
}

function uint(bytes: Uint8Array, at: number, width: number): number {
  return bytes.subarray(at, at + width).reduce((sum, byte) => sum * 256 + byte, 0);
}
