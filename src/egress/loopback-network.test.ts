import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { Authority } from '../../test/support/certificates.ts';
import type { Log } from '../core/log.ts';
import type { Allowed, CellNetwork } from './cell-network.ts';
import { networkOpener } from './open-network.ts';
import { Outside, until } from './outside.double.ts';
import { ProxyClient } from './proxy-front.double.ts';

const folder = mkdtempSync(join(tmpdir(), 'hotcell-egress-'));
const authority = new Authority(folder, 'egress-tests');
const { cert, key } = authority.issue('server', ['DNS:a.example', 'DNS:b.example']);
const caBundle = readFileSync(join(authority.folder, 'ca.pem'));
const outside = await Outside.start({ cert: readFileSync(cert), key: readFileSync(key) });
const open: CellNetwork[] = [];
afterEach(async () => {
  for (const network of open.splice(0)) network.close();
  await outside.endAll();
});
afterAll(() => {
  outside.close();
  rmSync(folder, { recursive: true });
});

const HTTP_HOST = `a.example:${outside.httpPort}`;
const HTTPS_HOST = `a.example:${outside.httpsPort}`;
const TLS_HOST = `a.example:${outside.tlsPort}`;
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

interface Opened {
  readonly network: CellNetwork;
  readonly client: ProxyClient;
  /** What knows the key says. */
  readonly auth: string;
  readonly token: string;
  /** Everything that was logged. */
  readonly lines: unknown[];
}

async function openNetwork(allow: readonly Allowed[]): Promise<Opened> {
  const lines: unknown[] = [];
  const note = (...words: unknown[]): void => void lines.push(words);
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const { gate } = await outside.open([], { log, caBundle });
  const opener = networkOpener('commands', {
    gate: () => Promise.resolve(gate),
    clock: { after: () => () => {} },
    log,
    howToAllow: 'Ask for it.',
  });
  const network = await opener(allow, () => Promise.reject(new Error('nothing runs in the cell for it')));
  open.push(network);
  await network.untilReady();
  const url = new URL(network.variables['http_proxy'] ?? '');
  expect([url.hostname, url.port, url.username]).toEqual(['127.0.0.1', String(network.port), 'hotcell']);
  const auth = basic(`${url.username}:${url.password}`);
  return { network, client: new ProxyClient(Number(url.port)), auth, token: url.password, lines };
}

describe('a way out on the loopback of the machine', () => {
  test('[MC-04] serves whoever has the key, by tunnels and plain requests', async () => {
    const { network, client, auth } = await openNetwork([HTTP_HOST, TLS_HOST]);
    const answer = await client.ask(`http://${HTTP_HOST}/x`, { headers: { 'proxy-authorization': auth } });
    expect(answer.status).toBe(201);
    // The key is for us alone.
    expect(outside.seen[0]?.request.headers).not.toHaveProperty('proxy-authorization');
    expect((await client.tunnel(TLS_HOST, `Proxy-Authorization: ${auth}\r\n`)).status).toBe(200);
    const refused = await client.ask('http://b.example/x', { headers: { 'proxy-authorization': auth } });
    expect(refused.status).toBe(403);
    expect(refused.text).toContain('Ask for it.');
    expect(network.refusalsSince(0)).toMatchObject([{ host: 'b.example', method: 'GET', path: '/x' }]);
  });

  test('[MC-04] has a key of 24 random bytes, and every one its own', async () => {
    const [one, other] = [await openNetwork([]), await openNetwork([HTTP_HOST])];
    expect(Buffer.from(one.token, 'base64url').length).toBe(24);
    expect(one.token).not.toBe(other.token);
    expect(one.network.port).not.toBe(other.network.port);
    const url = `http://${HTTP_HOST}/x`;
    expect((await other.client.ask(url, { headers: { 'proxy-authorization': one.auth } })).status).toBe(407);
  });

  test.each<[string, (opened: Opened) => string[]]>([
    ['nothing', () => []],
    [
      'a wrong key',
      ({ token }) => [basic(`hotcell:${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`)],
    ],
    ['a part of the key', ({ token }) => [basic(`hotcell:${token.slice(0, -1)}`)]],
    ['more than the key', ({ token }) => [basic(`hotcell:${token}x`)]],
    ['another name', ({ token }) => [basic(`hotcel:${token}`)]],
    ['no name', ({ token }) => [basic(token)]],
    ['another scheme', ({ token }) => [`Bearer ${token}`]],
    ['what is not encoded', ({ token }) => [`Basic hotcell:${token}`]],
    ['an empty line', () => ['']],
    ['the key and another one', ({ auth }) => [auth, basic('hotcell:x')]],
    ['another one and the key', ({ auth }) => [basic('hotcell:x'), auth]],
  ])('[MC-04] has nothing for who shows %s', async (_what, show) => {
    const opened = await openNetwork([HTTP_HOST, TLS_HOST]);
    const { network, client, token, lines } = opened;
    const shown = show(opened).map((value) => `Proxy-Authorization: ${value}\r\n`);
    const questions = [
      `GET http://${HTTP_HOST}/x HTTP/1.1\r\nHost: ${HTTP_HOST}`,
      `CONNECT ${TLS_HOST} HTTP/1.1\r\nHost: ${TLS_HOST}`,
      'GET /x HTTP/1.1\r\nHost: x',
      `GET http://not-allowed.example/ HTTP/1.1\r\nHost: not-allowed.example`,
    ];
    for (const question of questions) {
      const text = await client.raw(`${question}\r\n${shown.join('')}\r\n`);
      expect(text).toMatch(/^HTTP\/1\.1 407 [^]*connection: close[^]*proxy-authenticate: basic/i);
      expect(text).not.toContain(token);
    }
    // Somebody else's attempts say nothing about the cell, and what could have been refused is not told.
    expect([network.mark(), outside.seen, outside.greeted]).toEqual([0, [], []]);
    expect(JSON.stringify(lines)).not.toContain(token);
  });

  test('[MC-04] does not keep a stranger who never hangs up', async () => {
    const { client } = await openNetwork([TLS_HOST]);
    const { socket, status } = await client.tunnel(TLS_HOST);
    expect(status).toBe(407);
    // Whoever writes to a connection that is gone finds out.
    await until(() => socket.destroyed || !socket.write('x'.repeat(100)));
    await until(() => socket.destroyed);
  });

  test('[MC-04] asks for the key again with every request of a connection', async () => {
    const { client, auth } = await openNetwork([HTTP_HOST]);
    const ask = (path: string, header = ''): string =>
      `GET http://${HTTP_HOST}${path} HTTP/1.1\r\nHost: ${HTTP_HOST}\r\n${header}\r\n`;
    await client.raw(ask('/first', `Proxy-Authorization: ${auth}\r\n`) + ask('/second'));
    expect(outside.seen.map(({ request }) => request.url)).toEqual(['/first']);
  });

  test('[MC-04] writes the key nowhere, whatever a program does with it', async () => {
    const { network, client, auth, token, lines } = await openNetwork([]);
    const header = `Proxy-Authorization: ${auth}\r\n`;
    await client.raw(`GET http://hotcell:${token}@b.example/ HTTP/1.1\r\nHost: b.example\r\n${header}\r\n`);
    await client.raw(`CONNECT hotcell:${token}@b.example:443 HTTP/1.1\r\n${header}\r\n`);
    await client.raw(`GET http://b.example/?${token} HTTP/1.1\r\nHost: b.example\r\n${header}\r\n`);
    await client.raw(`NONSENSE ${token}\r\n${header}\r\n`);
    expect(network.mark()).toBe(3);
    expect(lines.length).toBe(3);
    expect(JSON.stringify([lines, network.refusalsSince(0)])).not.toContain(token);
  });

  test('[MC-04] does not hold nonsense of strangers against the cell', async () => {
    const { network, client } = await openNetwork([]);
    expect(await client.raw('\x16\x03\x01 hello\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
    expect(network.mark()).toBe(0);
  });

  test('[MC-04] can be changed while it is open', async () => {
    const { network, client, auth } = await openNetwork([]);
    const ask = async (): Promise<number> =>
      (await client.ask(`http://${HTTP_HOST}/x`, { headers: { 'proxy-authorization': auth } })).status;
    expect(await ask()).toBe(403);
    network.setAllow([{ host: HTTP_HOST, pathPattern: '/x' }]);
    expect(await ask()).toBe(201);
  });

  test('[MC-04] that is closed does not listen, and has no connections', async () => {
    const { network, client, auth } = await openNetwork([TLS_HOST]);
    const { socket } = await client.tunnel(TLS_HOST, `Proxy-Authorization: ${auth}\r\n`);
    const silent = await client.connect();
    const ended = Promise.all([once(socket.resume(), 'close'), once(silent.resume(), 'close')]);
    for (const each of [socket, silent]) each.once('end', () => each.destroy());
    network.close();
    network.close();
    await ended;
    await until(() => outside.served.size === 0);
    const late = connect({ host: '127.0.0.1', port: client.port });
    await expect(once(late, 'connect')).rejects.toThrow('ECONNREFUSED');
  });

  const WITH_FETCH = `const ask = async (url, headers = {}) => (await fetch(url, { headers })).status;`;
  // Node's fetch asks for a tunnel even where it need not.
  const WITH_REQUEST = `import http from 'node:http'; import https from 'node:https';
const ask = (url, headers = {}) => new Promise((resolve, reject) =>
  (url.startsWith('https') ? https : http).get(url, { headers }, (reply) => resolve(reply.resume().statusCode)).on('error', reject));`;
  test.each([
    ['Bun', join(import.meta.dirname, '../../node_modules/.bin/bun'), ['-e'], WITH_FETCH],
    ['Node', process.execPath, ['--input-type=module', '-e'], WITH_REQUEST],
  ])('[MC-04] is found by programs in %s', async (_name, program, args, ask) => {
    const { network } = await openNetwork([{ host: HTTPS_HOST, pathPattern: '/open/*' }, HTTP_HOST]);
    const script = `${ask}
const secure = { 'hotcell-scheme': 'https' };
console.log(await ask('http://${HTTPS_HOST}/open/x', secure), await ask('http://${HTTPS_HOST}/secret', secure));
console.log(await ask('http://${HTTP_HOST}/'), await ask('https://${HTTPS_HOST}/open/x').catch(() => 'no tunnel'));`;
    const env = { ...network.variables, PATH: process.env['PATH'], HOME: folder };
    const { stdout } = await promisify(execFile)(program, [...args, script], { env });
    expect(stdout).toBe('201 403\n201 no tunnel\n');
  });
});
