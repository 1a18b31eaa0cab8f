import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request as httpRequest, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { Authority } from '../../test/support/certificates.ts';
import { messageOf } from '../core/errors.ts';
import { SILENT_LOG, type Log } from '../core/log.ts';
import type { OpenOptions } from './gate.ts';
import { InjectedHeaders, type HeaderInjection } from './header-injection.ts';
import { networkOpener } from './open-network.ts';
import { Outside, codes, until, type Opened } from './outside.double.ts';
import { ScriptedCell } from './scripted-cell.double.ts';

const VALUE = 'sk-the-real-one';
const folder = mkdtempSync(join(tmpdir(), 'hotcell-egress-'));
const authority = new Authority(folder, 'egress-tests');
const { cert, key } = authority.issue('server', ['DNS:a.example', 'DNS:b.example']);
const caBundle = readFileSync(join(authority.folder, 'ca.pem'));
const certificate = { cert: readFileSync(cert), key: readFileSync(key) };
const outside = await Outside.start(certificate);
afterEach(() => outside.endAll());
afterAll(() => {
  outside.close();
  rmSync(folder, { recursive: true });
});

const PORT = outside.httpsPort;
/** The port of the tests' server stands for 443. */
const injectFor = (port: number): HeaderInjection[] => [
  { host: `a.example:${port}`, headers: { 'X-Api-Key': VALUE } },
];
const open = (port = PORT, allow = [`a.example:${port}`], log = SILENT_LOG): Promise<Opened> =>
  outside.open(allow, { caBundle, log }, { inject: injectFor(port) });

/** A server of HTTPS that does this. */
async function serve(listener: RequestListener): Promise<number> {
  const server = createHttpsServer(certificate, listener);
  return outside.listen((socket) => void server.emit('connection', socket));
}

describe('headers that the gate adds', () => {
  test('[FL-08] arrive over TLS, in place of what the cell has sent under their names', async () => {
    const { front, session } = await open();
    const headers = { 'X-API-Key': 'kept-by-the-gate', x_api_key: 'mine', 'x-own': 'yes' };
    const answer = await front.ask(`http://a.example:${PORT}/v1/messages?beta=1`, {
      method: 'POST',
      headers,
      body: '{}',
    });
    expect(answer).toMatchObject({ status: 201, text: 'answer to POST /v1/messages?beta=1' });
    const [seen] = outside.seen;
    expect(seen?.request.socket).toMatchObject({ encrypted: true, servername: 'a.example' });
    expect(seen?.request.headers).toMatchObject({
      'x-api-key': VALUE,
      'x-own': 'yes',
      host: `a.example:${PORT}`,
    });
    expect(seen?.request.headers).not.toHaveProperty('x_api_key');
    expect(seen?.request.rawHeaders.filter((name) => name.toLowerCase() === 'x-api-key')).toHaveLength(1);
    expect(JSON.stringify([answer, session.describe()])).not.toContain(VALUE);
    expect(session.describe()).toMatchObject({ allowedCount: 1, refusedCount: 0 });
  });

  test('[FL-08] cannot be taken away again by the cell', async () => {
    const { front } = await open();
    await front.ask(`http://a.example:${PORT}/`, {
      headers: { connection: 'close, x-api-key', te: 'trailers' },
    });
    expect(outside.seen[0]?.request.headers['x-api-key']).toBe(VALUE);
  });

  test('[FL-08] go to port 443 unless another one is named', async () => {
    const more: OpenOptions = { inject: [{ host: 'A.example', headers: { 'x-api-key': VALUE } }] };
    const { front, session, resolved } = await outside.open(['a.example'], { permit: [] }, more);
    expect((await front.ask('http://a.example/v1/x')).status).toBe(403);
    expect((await front.ask('http://a.example:80/v1/x')).status).toBe(403);
    expect(session.describe().refusals).toMatchObject([
      { host: 'a.example', port: 443, scheme: 'https', code: 'private_address', path: '/v1/x' },
      { host: 'a.example', port: 443, scheme: 'https', code: 'private_address' },
    ]);
    expect(resolved).toEqual(['a.example', 'a.example']);
  });

  test('[FL-08] are for hosts that the list allows, and as far as it does', async () => {
    const narrow = { host: `a.example:${PORT}`, pathPattern: '/v1/*', methods: ['POST' as const] };
    const { front, session } = await outside.open([narrow], { caBundle }, { inject: injectFor(PORT) });
    expect((await front.ask(`http://a.example:${PORT}/v1/x`, { method: 'POST' })).status).toBe(201);
    expect((await front.ask(`http://a.example:${PORT}/v1/x`)).status).toBe(403);
    session.setAllow([]);
    expect((await front.ask(`http://a.example:${PORT}/v1/x`, { method: 'POST' })).status).toBe(403);
    expect([codes(session), outside.seen.length]).toEqual([['not_allowed', 'not_allowed'], 1]);
  });

  test('[FL-08] go to no other host, port or scheme', async () => {
    const { httpPort, tlsPort } = outside;
    const allow = [
      `a.example:${PORT}`,
      `a.example:${httpPort}`,
      `a.example:${tlsPort}`,
      `b.example:${PORT}`,
      'a.example:443',
    ];
    const { front, session } = await open(PORT, allow);
    const https = { 'hotcell-scheme': 'https', 'x-api-key': 'mine' };
    expect((await front.ask(`http://b.example:${PORT}/`, { headers: https })).status).toBe(201);
    expect(
      (await front.ask(`http://a.example:${httpPort}/`, { headers: { 'x-api-key': 'mine' } })).status,
    ).toBe(201);
    expect(outside.seen.map(({ request }) => request.headers['x-api-key'])).toEqual(['mine', 'mine']);
    expect(outside.seen[1]?.request.socket).not.toHaveProperty('encrypted');
    // A tunnel to the very host: what is said in it is not ours to read.
    const secure = await front.secure(`a.example:${PORT}`, { servername: 'a.example', ca: caBundle });
    secure.write(`GET / HTTP/1.1\r\nHost: a.example:${PORT}\r\nConnection: close\r\n\r\n`);
    await secure.resume().toArray();
    expect(outside.seen[2]?.request.headers).toEqual({ host: `a.example:${PORT}`, connection: 'close' });
    expect(session.describe().refusedCount).toBe(0);
  });

  test('[FL-08] are not sent in the clear to the port of TLS', () => {
    const injected = new InjectedHeaders([{ host: 'a.example', headers: { 'x-api-key': VALUE } }]);
    expect(injected.secured({ host: 'a.example', port: 443 })).toBeUndefined();
    expect(injected.secured({ host: 'a.example', port: 8080 })).toBeUndefined();
    expect(injected.secured({ host: 'x.a.example', port: 80 })).toBeUndefined();
    expect(injected.secured({ host: 'a.example', port: 80 })).toEqual({ host: 'a.example', port: 443 });
  });

  test.each([
    ['another host', { ca: caBundle, name: 'c.example' }, /ERR_TLS_CERT_ALTNAME_INVALID/],
    ['nobody whom this machine trusts', { ca: undefined, name: 'a.example' }, /self-signed|UNABLE_TO_VERIFY/],
  ])('[FL-08] are not sent to who is certified as, or by, %s', async (_what, { ca, name }, why) => {
    const inject = [{ host: `${name}:${PORT}`, headers: { 'x-api-key': VALUE } }];
    const { front } = await outside.open([`${name}:${PORT}`], { caBundle: ca }, { inject });
    const answer = await front.ask(`http://${name}:${PORT}/`);
    expect(answer.status).toBe(502);
    expect(answer.text).toMatch(why);
    expect(JSON.stringify(answer)).not.toContain(VALUE);
    expect(outside.seen).toEqual([]);
  });

  test('[FL-08] do not follow a redirection, which goes back to the cell', async () => {
    const asked: (string | undefined)[] = [];
    const port = await serve((request, response) => {
      asked.push(request.url);
      response.writeHead(307, { location: 'http://b.example/steal' }).end();
    });
    const { front, resolved } = await open(port, [`a.example:${port}`, 'b.example']);
    const answer = await front.ask(`http://a.example:${port}/x`, { method: 'POST', body: 'x' });
    expect(answer).toMatchObject({ status: 307, headers: { location: 'http://b.example/steal' } });
    expect([asked, resolved]).toEqual([['/x'], ['a.example']]);
  });

  test('[FL-08] are not asked back with TRACE', async () => {
    const { front, session } = await open();
    const words = [`TRACE http://a.example:${PORT}/ HTTP/1.1`, `Host: a.example:${PORT}`, '', ''].join(
      '\r\n',
    );
    expect(await front.raw(words)).toMatch(/^HTTP\/1\.1 400 /);
    expect([codes(session), outside.seen]).toEqual([['malformed'], []]);
  });

  test('[FL-08] are in no log, no refusal and no description, whatever goes wrong', async () => {
    const lines: unknown[] = [];
    const note = (fields: Record<string, unknown>, message: string): void =>
      void lines.push([fields, message]);
    const log: Log = { debug: note, info: note, warn: note, error: note };
    const port = await outside.listen((socket) => void socket.resume().end('nonsense'));
    const { gate, session, front } = await open(port, [`a.example:${port}`], log);
    const answers = [
      await front.ask(`http://a.example:${port}/`),
      await front.ask('http://b.example/'),
      await front.raw('GET / HTTP/1.1\r\n\r\n'),
    ];
    session.setAllow([]);
    answers.push(await front.ask(`http://a.example:${port}/`));
    expect(lines.length).toBeGreaterThan(1);
    const all = inspect([lines, answers, session, gate, session.describe()], { depth: 20, showHidden: true });
    expect(all).not.toContain(VALUE);
    expect(JSON.stringify([lines, answers, session, gate])).not.toContain(VALUE);
  });

  test('[FL-08] need a client that knows nothing of it, and may be kept from being printed', async () => {
    const shy = { reveal: () => VALUE, toJSON: () => 'no', toString: () => 'no' };
    const inject = [{ host: `a.example:${PORT}`, headers: { authorization: shy } }];
    const { front } = await outside.open([`a.example:${PORT}`], { caBundle }, { inject });
    await front.ask(`http://a.example:${PORT}/`);
    expect(outside.seen[0]?.request.headers.authorization).toBe(VALUE);
  });

  test.each<[string, HeaderInjection]>([
    ['a pattern', { host: '*.example', headers: {} }],
    ['an address', { host: '127.0.0.1', headers: {} }],
    ['a URL', { host: 'https://a.example', headers: {} }],
    ['the port of plain HTTP', { host: 'a.example:80', headers: {} }],
    ['a second line', { host: 'a.example', headers: { 'x-api-key': `${VALUE}\r\nx: y` } }],
    ['a name that is none', { host: 'a.example', headers: { 'x api': VALUE } }],
    ['the length of the request', { host: 'a.example', headers: { 'Content-Length': VALUE } }],
    ['the host of the request', { host: 'a.example', headers: { Host: VALUE } }],
  ])('[FL-08] are refused with %s, and the value is not in the message', (_what, injection) => {
    let said = '';
    try {
      expect(new InjectedHeaders([injection])).toBeUndefined();
    } catch (error) {
      said = messageOf(error);
    }
    expect(said).toMatch(/header/);
    expect(said).not.toContain(VALUE);
  });
});

describe('networks of cells', () => {
  test.each(['cells', 'commands'] as const)(
    '[FL-08] hand the headers to the gate, with walls around %s',
    async (confines) => {
      const { gate } = await outside.open([], { caBundle });
      const clock = { after: () => () => {} };
      const parts = {
        gate: () => Promise.resolve(gate),
        clock,
        log: SILENT_LOG,
        howToAllow: '',
      };
      const relay = new ScriptedCell();
      const network = await networkOpener(confines, parts)(
        [`a.example:${PORT}`],
        () => Promise.resolve(relay),
        {
          inject: injectFor(PORT),
        },
      );
      const proxy = new URL(network.variables['http_proxy'] ?? '');
      const words = [
        `GET http://a.example:${PORT}/ HTTP/1.1`,
        `Host: a.example:${PORT}`,
        `Proxy-Authorization: Basic ${Buffer.from(`${proxy.username}:${proxy.password}`).toString('base64')}`,
        '',
        '',
      ].join('\r\n');
      if (confines === 'cells') {
        relay.say('R', 0);
        relay.say('N', 1);
        relay.say('D', 1, Buffer.from(words));
      } else {
        const socket = httpRequest({
          host: '127.0.0.1',
          port: Number(proxy.port),
          path: `http://a.example:${PORT}/`,
          headers: {
            host: `a.example:${PORT}`,
            'proxy-authorization': words.split('\r\n')[2]?.slice(21) ?? '',
          },
        });
        socket.on('error', () => {});
        socket.end();
      }
      await until(() => outside.seen.length === 1);
      expect(outside.seen[0]?.request.headers['x-api-key']).toBe(VALUE);
      network.close();
    },
  );
});
