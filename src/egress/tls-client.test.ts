import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { Authority } from '../../test/support/certificates.ts';
import { messageOf } from '../core/errors.ts';
import { Outside, codes, until } from './outside.double.ts';
import type { Answer, ProxyClient } from './proxy-front.double.ts';

const MiB = 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), 'hotcell-egress-'));
const authority = new Authority(folder, 'egress-tests');
const { cert, key } = authority.issue('server', ['DNS:a.example', 'DNS:b.example']);
const caBundle = readFileSync(join(authority.folder, 'ca.pem'));
const certificate = { cert: readFileSync(cert), key: readFileSync(key) };
const outside = await Outside.start(certificate);
afterEach(async () => {
  vi.unstubAllEnvs();
  await outside.endAll();
});
afterAll(() => {
  outside.close();
  rmSync(folder, { recursive: true });
});

const PORT = outside.httpsPort;
const URL_OF_A = `http://a.example:${PORT}`;
const HTTPS = { 'hotcell-scheme': 'https' };
const ask = (front: ProxyClient, url: string, more: Record<string, string> = {}): Promise<Answer> =>
  front.ask(url, { headers: { ...HTTPS, ...more } });

describe('a plain request for https', () => {
  test('[MC-04] is checked like any other, and sent on over TLS', async () => {
    const rule = { host: `a.example:${PORT}`, pathPattern: '/open/*', methods: ['POST' as const] };
    const { front, session } = await outside.open([rule], { caBundle });
    const body = 'x'.repeat(3 * MiB);
    const headers = { ...HTTPS, 'content-length': String(body.length), 'x-own': 'yes' };
    const answer = await front.ask(`${URL_OF_A}/open/./x?y=1`, { method: 'POST', headers, body });
    expect(answer).toMatchObject({ status: 201, text: 'answer to POST /open/x?y=1' });
    expect(outside.seen[0]?.body).toBe(body);
    expect(outside.seen[0]?.request.headers).toEqual({
      host: `a.example:${PORT}`,
      'x-own': 'yes',
      'content-length': String(body.length),
      connection: 'close',
    });
    expect(outside.seen[0]?.request.socket).toMatchObject({ encrypted: true, servername: 'a.example' });
    expect((await ask(front, `${URL_OF_A}/open/x`)).status).toBe(403);
    expect((await front.ask(`${URL_OF_A}/secret`, { method: 'POST', headers: HTTPS })).status).toBe(403);
    expect(session.describe()).toMatchObject({
      allowedCount: 1,
      refusals: [
        { scheme: 'https', method: 'GET', path: '/open/x' },
        { scheme: 'https', method: 'POST', path: '/secret' },
      ],
    });
    // The connection is used for nothing else.
    await until(() => outside.seen[0]?.request.socket.destroyed === true);
  });

  test('[MC-04] goes to the usual port of https', async () => {
    const { front, session } = await outside.open(['b.example:80']);
    expect((await ask(front, 'http://a.example/x')).status).toBe(403);
    expect((await ask(front, 'http://b.example/x')).status).toBe(403);
    expect(session.describe().refusals).toMatchObject([
      { host: 'a.example', port: 443, scheme: 'https', code: 'not_allowed' },
      { host: 'b.example', port: 443, scheme: 'https', code: 'port' },
    ]);
  });

  test('[MC-04] to a private address is refused', async () => {
    const { front, session } = await outside.open(['a.example'], { permit: [], caBundle });
    expect((await ask(front, 'http://a.example/')).status).toBe(403);
    expect(codes(session)).toEqual(['private_address']);
  });

  test.each([
    ['nobody whom Node trusts', 'a.example', {}, /self-signed|UNABLE_TO_VERIFY/],
    ['another host', 'c.example', { caBundle }, /ERR_TLS_CERT_ALTNAME_INVALID/],
  ])('[MC-04] is not sent to who is certified by, or as, %s', async (_what, host, options, why) => {
    // Whoever starts the server with this must not switch it off for cells.
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    const { front, session } = await outside.open([`${host}:${PORT}`], options);
    const answer = await ask(front, `http://${host}:${PORT}/`);
    expect(answer.status).toBe(502);
    expect(answer.text).toMatch(why);
    expect([outside.seen, session.describe().allowedCount]).toEqual([[], 0]);
  });

  test.each<[string, (socket: Socket) => void]>([
    ['no TLS', (socket) => void socket.resume().end('HTTP/1.1 200 OK\r\n\r\n')],
    ['nothing', (socket) => void socket.resume()],
    ['the end', (socket) => void socket.destroy()],
  ])('[MC-04] that is answered with %s gets a failure', async (_what, serve) => {
    const sockets: Socket[] = [];
    const port = await outside.listen((socket) => {
      sockets.push(socket);
      serve(socket);
    });
    const { front } = await outside.open([`a.example:${port}`], { caBundle, connectTimeoutMs: 300 });
    expect(await ask(front, `http://a.example:${port}/`)).toMatchObject({ status: 502 });
    await until(() => sockets.every(({ destroyed }) => destroyed));
  });

  test.each([
    ['twice', ['hotcell-scheme: https', 'hotcell-scheme: https']],
    ['twice and differently', ['hotcell-scheme: https', 'Hotcell-Scheme: http']],
    ['as a list', ['hotcell-scheme: https, http']],
    ['with another protocol', ['hotcell-scheme: ftp']],
    ['with nothing', ['hotcell-scheme:']],
  ])('[MC-04] is refused when it says so %s', async (_what, lines) => {
    const { front, session, resolved } = await outside.open([`a.example:${PORT}`], { caBundle });
    const words = [`GET ${URL_OF_A}/ HTTP/1.1`, `Host: a.example:${PORT}`, ...lines, '', ''].join('\r\n');
    expect(await front.raw(words)).toMatch(/^HTTP\/1\.1 400 /);
    expect([codes(session), resolved]).toEqual([['malformed'], []]);
  });

  test('[MC-04] does not hand on what was said to us, whatever is said about it', async () => {
    const { front } = await outside.open([`a.example:${PORT}`], { caBundle });
    const connection = 'close, hotcell-scheme, host';
    expect(
      (await ask(front, `${URL_OF_A}/`, { connection, 'proxy-authorization': 'Basic eA==' })).status,
    ).toBe(201);
    expect(outside.seen[0]?.request.headers).toEqual({ host: `a.example:${PORT}`, connection: 'close' });
  });

  test('[MC-04] gets redirections as they are: the next request is checked for itself', async () => {
    const server = createTlsServer(certificate, (socket) => {
      socket.once('data', () =>
        socket.end('HTTP/1.1 302 Found\r\nLocation: https://a.example/secret\r\nContent-Length: 0\r\n\r\n'),
      );
    });
    const port = await outside.listen((socket) => void server.emit('connection', socket));
    const { front, resolved } = await outside.open([{ host: `a.example:${port}`, pathPattern: '/open' }], {
      caBundle,
    });
    const answer = await ask(front, `http://a.example:${port}/open`);
    expect(answer).toMatchObject({ status: 302, headers: { location: 'https://a.example/secret' } });
    expect(resolved).toEqual(['a.example']);
  });

  test('[MC-04] ends with the permission, in the middle of the handshake or of the answer', async () => {
    const heard: string[] = [];
    const sockets: Socket[] = [];
    const server = createTlsServer(certificate, (socket) => {
      socket.on('error', () => {});
      socket.on('data', (piece) => {
        heard.push(piece.toString());
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart');
      });
    });
    let isMute = true;
    const port = await outside.listen((socket) => {
      sockets.push(socket);
      if (!isMute) server.emit('connection', socket);
    });
    const { front, session } = await outside.open([`a.example:${port}`], { caBundle });
    const outcome = (): Promise<unknown> => ask(front, `http://a.example:${port}/`).catch(messageOf);
    const first = outcome();
    await until(() => sockets.length === 1);
    session.setAllow([]);
    expect(await first).toMatch(/socket hang up|ECONNRESET/);
    await until(() => sockets[0]?.resume().destroyed === true);
    isMute = false;
    session.setAllow([`a.example:${port}`]);
    const second = outcome();
    await until(() => heard.length === 1);
    session.setAllow([]);
    expect(await second).toMatch(/aborted|socket hang up/);
    await until(() => sockets[1]?.destroyed === true);
    expect(session.describe().refusedCount).toBe(2);
  });
});
