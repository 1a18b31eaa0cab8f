import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Authority } from '../../test/support/certificates.ts';
import { Outside, codes, until } from './outside.double.ts';

const folder = mkdtempSync(join(tmpdir(), 'hotcell-egress-'));
const authority = new Authority(folder, 'egress-tests');
const { cert, key } = authority.issue('server', ['DNS:a.example', 'DNS:b.example']);
const ca = readFileSync(join(authority.folder, 'ca.pem'));
const outside = await Outside.start({ cert: readFileSync(cert), key: readFileSync(key) });
afterEach(() => outside.endAll());
afterAll(() => {
  outside.close();
  rmSync(folder, { recursive: true });
});

describe('a tunnel', () => {
  test('[RS-15] to an allowed name carries TLS both ways, and ends each way by itself', async () => {
    const { front, session, resolved } = await outside.open([`a.example:${outside.tlsPort}`]);
    const secure = await front.secure(`A.example.:${outside.tlsPort}`, { servername: 'a.example', ca });
    secure.end('hello');
    expect(Buffer.concat((await secure.toArray()) as Buffer[]).toString()).toBe('hello');
    expect(outside.greeted).toEqual(['a.example']);
    expect(resolved).toEqual(['a.example']);
    expect(session.describe()).toMatchObject({ allowedCount: 1, refusedCount: 0 });
  });

  test('[RS-15] is refused for other names, which are not even resolved', async () => {
    const { front, session, resolved } = await outside.open([`a.example:${outside.tlsPort}`, '*.c.example']);
    for (const name of ['b.example', 'c.example', 'x.a.example', 'nota.example', 'localhost']) {
      const { status, text } = await front.tunnel(`${name}:443`);
      expect(status).toBe(403);
      expect(text).toContain('x-hotcell-refused: not_allowed\r\n');
      expect(text).toContain(
        `hotcell: egress to ${name}:443 refused: not on the allow-list of this session\n`,
      );
    }
    expect(resolved).toEqual([]);
    expect(session.describe()).toMatchObject({ allowedCount: 0, refusedCount: 5 });
    expect(session.describe().refusals[0]).toMatchObject({
      host: 'b.example',
      port: 443,
      code: 'not_allowed',
    });
  });

  test('[RS-15] is refused with an empty list', async () => {
    const { front, resolved } = await outside.open([]);
    expect((await front.tunnel('a.example:443')).status).toBe(403);
    expect(resolved).toEqual([]);
  });

  test.each([
    '127.0.0.1:443',
    '[::1]:443',
    '2130706433:443',
    '0x7f.1:443',
    '0177.0.0.1:443',
    '169.254.169.254:80',
  ])('[RS-15] to the address %s is refused, and nobody is asked about it', async (target) => {
    const { front, session, resolved } = await outside.open(['a.example']);
    const { status, text } = await front.tunnel(target);
    expect([status, codes(session), resolved]).toEqual([403, ['ip_literal'], []]);
    expect(text).toContain(target);
  });

  test('[RS-15] to another port is refused', async () => {
    const { front, session, resolved } = await outside.open(['a.example']);
    for (const port of [22, 80, 8443]) expect((await front.tunnel(`a.example:${port}`)).status).toBe(403);
    expect([codes(session), resolved]).toEqual([['port', 'port', 'port'], []]);
  });

  test.each([
    ['a private address', ['10.0.0.7']],
    ['a public and a private address', ['203.0.113.1', '192.168.0.1']],
    ['a private and a public address', ['fd00::1', '203.0.113.1']],
    ['the metadata service', ['169.254.169.254']],
    ['an address of IPv4 inside of one of IPv6', ['::ffff:169.254.169.254']],
    ['what is no address', ['localhost']],
  ])('[RS-15] to a name that stands for %s is refused', async (_what, addresses) => {
    const { front, session } = await outside.open(['a.example'], {
      lookup: () => Promise.resolve(addresses),
    });
    const { status, text } = await front.tunnel('a.example:443');
    expect([status, codes(session)]).toEqual([403, ['private_address']]);
    expect(text).toContain('x-hotcell-refused: private_address');
  });

  test('[RS-15] goes to the address that was checked, whatever the name stands for a moment later', async () => {
    let times = 0;
    const { front, resolved } = await outside.open([`a.example:${outside.tlsPort}`], {
      lookup: () => Promise.resolve([times++ === 0 ? '127.0.0.1' : '10.0.0.1']),
    });
    const secure = await front.secure(`a.example:${outside.tlsPort}`, { servername: 'a.example', ca });
    secure.destroy();
    expect(resolved).toEqual(['a.example']);
    expect((await front.tunnel(`a.example:${outside.tlsPort}`)).status).toBe(403);
  });

  test('[RS-15] to a name without an address is refused, also when nobody answers', async () => {
    const { front, session } = await outside.open(['a.example', 'b.example', 'd.example'], {
      connectTimeoutMs: 50,
      lookup: (host) => {
        if (host === 'a.example') return Promise.resolve([]);
        return host === 'b.example' ? Promise.reject(new Error('ENOTFOUND')) : new Promise(() => {});
      },
    });
    for (const name of ['a', 'b', 'd']) expect((await front.tunnel(`${name}.example:443`)).status).toBe(403);
    expect(codes(session)).toEqual(['unresolvable', 'unresolvable', 'unresolvable']);
  });

  test('[RS-15] to where nobody listens is a failure and not a refusal', async () => {
    const port = await vacantPort();
    const { front, session } = await outside.open([`a.example:${port}`]);
    const { status, text } = await front.tunnel(`a.example:${port}`);
    expect(status).toBe(502);
    expect(text).toContain('ECONNREFUSED');
    expect(session.describe()).toMatchObject({ allowedCount: 0, refusedCount: 0 });
  });
});

describe('what is said first in a tunnel', () => {
  let bytes = 0;
  let port = 0;
  beforeEach(async () => {
    bytes = 0;
    port = await outside.listen((socket) => socket.on('data', (piece) => (bytes += piece.length)));
  });

  test.each([
    ['another name', 'b.example'],
    ['a name below', 'x.a.example'],
    ['no name', ''],
  ])('[RS-15] must not be a handshake with %s', async (_what, servername) => {
    const { front, session } = await outside.open([`a.example:${port}`]);
    await expect(front.secure(`a.example:${port}`, { servername, ca })).rejects.toThrow(/unrecognized name/);
    expect(codes(session)).toEqual(['sni_mismatch']);
    expect(session.describe().allowedCount).toBe(0);
    expect(bytes).toBe(0);
  });

  test('[RS-15] must not be something else than TLS', async () => {
    const { front, session } = await outside.open([`a.example:${port}`]);
    const { socket } = await front.tunnel(`a.example:${port}`);
    socket.write('GET / HTTP/1.1\r\nHost: b.example\r\n\r\n');
    const said = Buffer.concat((await socket.resume().toArray()) as Buffer[]);
    expect(said).toEqual(Buffer.from([21, 3, 1, 0, 2, 2, 112]));
    expect([codes(session), bytes]).toEqual([['sni_mismatch'], 0]);
  });

  test('[RS-15] comes too late when the server has gone: then the connection ends', async () => {
    const sockets: Socket[] = [];
    const gone = await outside.listen((socket) => void sockets.push(socket));
    const { front } = await outside.open([`a.example:${gone}`]);
    const { socket } = await front.tunnel(`a.example:${gone}`);
    await until(() => sockets.length === 1);
    sockets[0]?.resetAndDestroy();
    await until(() => sockets[0]?.closed === true);
    const ended = once(socket.resume(), 'end');
    socket.write(await captureHello());
    await ended;
    socket.destroy();
  });

  test('[RS-15] may come byte by byte, and with the question', async () => {
    const { front } = await outside.open([`a.example:${outside.tlsPort}`]);
    const hello = await captureHello();
    const together = await front.connect();
    const question = `CONNECT a.example:${outside.tlsPort} HTTP/1.1\r\n\r\n`;
    together.write(Buffer.concat([Buffer.from(question), hello]));
    await until(() => together.bytesRead > 500);
    together.destroy();
    const { socket: slow } = await front.tunnel(`a.example:${outside.tlsPort}`);
    slow.setNoDelay(true);
    slow.resume();
    const before = slow.bytesRead;
    for (const byte of hello) {
      slow.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    await until(() => slow.bytesRead > before + 500);
    slow.destroy();
  });
});

/** What Node's TLS client says first, for a.example. */
async function captureHello(): Promise<Buffer> {
  const heard = Promise.withResolvers<Buffer>();
  const port = await outside.listen((socket) => socket.once('data', heard.resolve));
  const client = connectTls({ port, servername: 'a.example' });
  client.on('error', () => {});
  const hello = await heard.promise;
  client.destroy();
  return hello;
}

async function vacantPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
