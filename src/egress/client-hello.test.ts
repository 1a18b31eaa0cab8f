import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { beforeAll, describe, expect, test } from 'vitest';
import { LONGEST_HELLO, readClientHello } from './client-hello.ts';

/** The first bytes that Node's own TLS client sends. */
async function capture(servername: string | undefined): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = connect({ host: '127.0.0.1', port, ...(servername === undefined ? {} : { servername }) });
  client.on('error', () => {});
  const [socket] = await once(server, 'connection');
  const [bytes] = await once(socket, 'data');
  client.destroy();
  socket.destroy();
  server.close();
  return bytes as Buffer;
}

/** The same handshake in records of `size` bytes. */
function inRecords(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const piece = message.subarray(at, at + size);
    records.push(Buffer.from([22, 3, 1, piece.length >> 8, piece.length & 255]), piece);
  }
  return Buffer.concat(records);
}

const u16 = (value: number): number[] => [value >> 8, value & 255];
const counted = (bytes: readonly number[]): number[] => [...u16(bytes.length), ...bytes];
const nameList = (...names: readonly string[]): number[] =>
  counted(names.flatMap((name) => [0, ...counted([...Buffer.from(name)])]));

/** A ClientHello with these extensions. */
function handmade(extensions: readonly (readonly [number, readonly number[]])[]): Buffer {
  const list = counted(extensions.flatMap(([type, content]) => [...u16(type), ...counted(content)]));
  const body = [3, 3, ...randomBytes(32), 0, ...counted([19, 1]), 1, 0, ...list];
  const message = [1, 0, ...counted(body)];
  return Buffer.from([22, 3, 1, ...counted(message)]);
}

let real: Buffer = Buffer.alloc(0);
beforeAll(async () => {
  real = await capture('www.example.org');
});

describe('the ClientHello', () => {
  test('[RS-15] of a real client is understood', async () => {
    expect(readClientHello(real)).toEqual({ kind: 'hello', serverName: 'www.example.org' });
    expect(readClientHello(await capture(undefined))).toEqual({ kind: 'hello', serverName: undefined });
  });

  test('[RS-15] is understood when it is spread over records, and with whatever follows it', () => {
    for (const size of [1, 2, 3, 4, 5, 50, 200]) {
      expect(readClientHello(inRecords(real, size))).toEqual({
        kind: 'hello',
        serverName: 'www.example.org',
      });
    }
    expect(readClientHello(Buffer.concat([real, randomBytes(100)])).kind).toBe('hello');
  });

  test('[RS-15] is waited for as long as it is not whole', () => {
    for (const bytes of [real, inRecords(real, 7)]) {
      for (let length = 0; length < bytes.length; length++) {
        expect([length, readClientHello(bytes.subarray(0, length)).kind]).toEqual([length, 'incomplete']);
      }
    }
  });

  test('[RS-15] is not waited for without end', () => {
    const endless = inRecords(
      Buffer.concat([Buffer.alloc(5), Buffer.from([1, 0, 0x3f, 0xff]), Buffer.alloc(16_000)]),
      1,
    );
    expect(readClientHello(endless.subarray(0, LONGEST_HELLO)).kind).toBe('not_tls');
    expect(readClientHello(Buffer.from([22, 3, 1, 0, 4, 1, 1, 0, 0])).kind).toBe('not_tls');
    expect(readClientHello(Buffer.from([22, 3, 1, 0x80, 0, 1])).kind).toBe('not_tls');
    expect(readClientHello(Buffer.from([22, 3, 1, 0, 0])).kind).toBe('not_tls');
  });

  test.each([
    ['two names in one list', [[0, nameList('a.example', 'b.example')]]],
    [
      'two lists',
      [
        [0, nameList('a.example')],
        [0, nameList('b.example')],
      ],
    ],
    ['an empty list', [[0, nameList()]]],
    ['bytes after the list', [[0, [...nameList('a.example'), 0]]]],
    ['a name of another kind', [[0, counted([1, ...counted([97])])]]],
    ['a name that goes beyond its list', [[0, counted([0, 0, 9, 97])]]],
  ] as const)('[RS-15] with %s is refused', (_what, extensions) => {
    expect(readClientHello(handmade(extensions)).kind).toBe('not_tls');
  });

  test('[RS-15] has the name between other extensions, as it was sent', () => {
    const bytes = handmade([
      [10, [1, 2, 3]],
      [0, nameList('a.example')],
      [43, []],
    ]);
    expect(readClientHello(bytes)).toEqual({ kind: 'hello', serverName: 'a.example' });
    const strange = handmade([[0, nameList('evil.net\0.a.example')]]);
    expect(readClientHello(strange)).toEqual({ kind: 'hello', serverName: 'evil.net\0.a.example' });
  });

  test.each([
    ['a request of HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['SSH', Buffer.from('SSH-2.0-x\r\n')],
    ['a ClientHello of SSL 2', Buffer.from([0x80, 0x2e, 1, 0, 2])],
    ['a ServerHello', Buffer.from([22, 3, 3, 0, 4, 2, 0, 0, 0])],
    ['application data', Buffer.from([23, 3, 3, 0, 1, 0])],
  ])('[RS-15] is not %s', (_what, bytes) => {
    expect(readClientHello(bytes).kind).toBe('not_tls');
  });

  test('[RS-15] may be any bytes at all', () => {
    const kinds = new Set(['incomplete', 'not_tls', 'hello']);
    for (let round = 0; round < 3000; round++) {
      const noise = randomBytes(Math.floor(Math.random() * 600));
      expect(kinds).toContain(readClientHello(noise).kind);
      expect(kinds).toContain(readClientHello(Buffer.concat([real.subarray(0, round % 60), noise])).kind);
      const bent = Buffer.from(real);
      for (let times = 0; times <= round % 4; times++) {
        bent[Math.floor(Math.random() * bent.length)] = Math.floor(Math.random() * 256);
      }
      expect(kinds).toContain(readClientHello(bent).kind);
      expect(kinds).toContain(
        readClientHello(bent.subarray(0, Math.floor(Math.random() * bent.length))).kind,
      );
    }
  });
});
