import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { Authority } from '../../test/support/certificates.ts';
import type { HttpRule } from './cell-network.ts';
import { ruleFor } from './http-rule.ts';
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

const PORT = outside.httpPort;
const URL_OF_A = `http://a.example:${PORT}`;
const OPEN_PATHS: HttpRule = { host: `a.example:${PORT}`, pathPattern: '/open/*' };
const ONLY_GET: HttpRule = { host: `a.example:${PORT}`, methods: ['GET'] };
const sent = (): unknown[] => outside.seen.map(({ request }) => `${request.method} ${request.url}`);

describe('a host of which parts are allowed', () => {
  test('[MC-04] answers to these, and to nothing else', async () => {
    const { front, session } = await outside.open([{ ...OPEN_PATHS, methods: ['GET', 'POST'] }]);
    expect((await front.ask(`${URL_OF_A}/open/x?y=/../z`)).status).toBe(201);
    expect((await front.ask(`${URL_OF_A}/open/x`, { method: 'POST' })).status).toBe(201);
    expect((await front.ask(`${URL_OF_A}/open/x`, { method: 'DELETE' })).status).toBe(403);
    expect((await front.ask(`${URL_OF_A}/open/x`, { method: 'HEAD' })).status).toBe(403);
    const refused = await front.ask(`${URL_OF_A}/secret?token=abc`);
    expect(refused).toMatchObject({ status: 403, headers: { 'x-hotcell-refused': 'not_allowed' } });
    expect(refused.text).toContain('only other paths or methods of this host are allowed');
    expect((await front.ask(`http://b.example:${PORT}/open/x`)).status).toBe(403);
    expect(sent()).toEqual(['GET /open/x?y=/../z', 'POST /open/x']);
    expect(session.describe()).toMatchObject({ allowedCount: 2, refusedCount: 4 });
  });

  test('[MC-04] takes rules together with patterns, each for its own', async () => {
    const { front } = await outside.open([OPEN_PATHS, ONLY_GET, `b.example:${PORT}`]);
    expect((await front.ask(`${URL_OF_A}/secret`)).status).toBe(201);
    expect((await front.ask(`${URL_OF_A}/open/x`, { method: 'PUT' })).status).toBe(201);
    expect((await front.ask(`${URL_OF_A}/secret`, { method: 'PUT' })).status).toBe(403);
    expect((await front.ask(`http://b.example:${PORT}/secret`, { method: 'PUT' })).status).toBe(201);
  });

  test.each([
    '/open/../secret',
    '/open/%2e%2e/secret',
    '/open/.%2E/secret',
    '/open/..%2fsecret',
    '/open/%252e%252e%252fsecret',
    '/open\\..\\secret',
    '/open/..\\secret',
    '/open/..;/secret',
    '/open/%c0%ae%c0%ae/secret',
    '//open/x',
    '//a.example/open/x',
    '/\\open/x',
    '/./secret',
    '/secret?/open/x',
    '?/open/x',
    '',
  ])('[MC-04] is not asked for %j', async (path) => {
    const { front, session } = await outside.open([OPEN_PATHS]);
    const words = `GET ${URL_OF_A}${path} HTTP/1.1\r\nHost: a.example:${PORT}\r\n\r\n`;
    expect(await front.raw(words)).toMatch(/^HTTP\/1\.1 403 /);
    expect([codes(session), sent()]).toEqual([['not_allowed'], []]);
  });

  test.each([
    ['/open/x#/../../secret', '#'],
    ['/open/x?a#b', '#'],
  ])('[MC-04] is not asked for %j, which is no address for a server', async (path) => {
    const { front, session } = await outside.open([OPEN_PATHS]);
    const words = `GET ${URL_OF_A}${path} HTTP/1.1\r\nHost: a.example:${PORT}\r\n\r\n`;
    expect(await front.raw(words)).toMatch(/^HTTP\/1\.1 400 /);
    expect([codes(session), sent()]).toEqual([['malformed'], []]);
  });

  test.each([
    ['/open/./x', '/open/x'],
    ['/secret/../open/x', '/open/x'],
    ['/secret\\..\\open\\x', '/open/x'],
    ['/x/%2e%2e/open/x', '/open/x'],
    ['/open/"?"', '/open/%22?"'],
  ])('[MC-04] is asked for what was compared: %j is sent as %j', async (path, expected) => {
    const { front } = await outside.open([OPEN_PATHS]);
    const words = `GET ${URL_OF_A}${path} HTTP/1.1\r\nHost: a.example:${PORT}\r\n\r\n`;
    expect(await front.raw(words)).toMatch(/^HTTP\/1\.1 201 /);
    expect(sent()).toEqual([`GET ${expected}`]);
  });

  test.each([
    ['a method in lower case', 'get', 400],
    ['a method that nobody knows', 'GETT', 400],
    ['TRACE', 'TRACE', 403],
    ['a method of another protocol', 'PROPFIND', 403],
    ['CONNECT with a whole address', 'CONNECT', 403],
  ])('[MC-04] is not asked with %s', async (_what, method, status) => {
    const { front } = await outside.open([ONLY_GET]);
    const words = `${method} ${URL_OF_A}/open/x HTTP/1.1\r\nHost: a.example:${PORT}\r\n\r\n`;
    expect(await front.raw(words)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(sent()).toEqual([]);
  });

  test.each([
    'X-HTTP-Method-Override: DELETE',
    'x-http-method: DELETE',
    'X-Original-URL: /secret',
    'X_Rewrite_Url: /',
  ])('[MC-04] is not asked in two ways at once by %s, unless all of it is allowed', async (header) => {
    const { front, session } = await outside.open([OPEN_PATHS]);
    const words = `GET ${URL_OF_A}/open/x HTTP/1.1\r\nHost: a.example:${PORT}\r\n${header}\r\n\r\n`;
    expect(await front.raw(words)).toMatch(/^HTTP\/1\.1 403 /);
    const [refused] = session.describe().refusals;
    // So that what it says is needed is really enough.
    session.setAllow([(refused && ruleFor(refused)) ?? '']);
    expect(await front.raw(words)).toMatch(/^HTTP\/1\.1 201 /);
  });

  test('[MC-04] is asked once a connection, also when a second request stands behind the first', async () => {
    const { front, session } = await outside.open([OPEN_PATHS]);
    const ask = (path: string): string =>
      `GET ${URL_OF_A}${path} HTTP/1.1\r\nHost: a.example:${PORT}\r\nConnection: keep-alive\r\n\r\n`;
    const answer = await front.raw(ask('/open/x') + ask('/secret') + ask('/open/y'));
    expect(answer.match(/^HTTP\/1\.1 201 /gm)?.length).toBe(1);
    // Neither may it be hidden in a body.
    const body = ask('/secret');
    await front.ask(`${URL_OF_A}/open/z`, {
      method: 'POST',
      headers: { 'content-length': `${body.length}` },
      body,
    });
    expect(sent()).toEqual(['GET /open/x', 'POST /open/z']);
    expect(outside.seen[1]?.body).toBe(body);
    expect(session.describe().allowedCount).toBe(2);
  });

  test.each([[[OPEN_PATHS]], [[ONLY_GET]]])('[MC-04] cannot be tunnelled to: %j', async (allow) => {
    const { front, session, resolved } = await outside.open(allow);
    const { status, text } = await front.tunnel(`a.example:${PORT}`);
    expect(status).toBe(403);
    expect(text).toContain('only parts of this host are allowed; use fetch, or have the whole host allowed');
    expect(resolved).toEqual([]);
    const [refused] = session.describe().refusals;
    expect(refused).toMatchObject({ host: 'a.example', port: PORT, code: 'not_allowed' });
    expect(Object.keys(refused ?? {})).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/scheme|method|path/)]),
    );
  });

  test.each([
    [[{ host: `a.example:${outside.tlsPort}` }]],
    [[{ host: `a.example:${outside.tlsPort}`, pathPattern: '/*' }]],
    [[{ host: `a.example:${outside.tlsPort}`, pathPattern: '/x' }, `a.example:${outside.tlsPort}`]],
  ])('[MC-04] can be tunnelled to when something allows all of it: %j', async (allow) => {
    const { front } = await outside.open(allow);
    (await front.secure(`a.example:${outside.tlsPort}`, { servername: 'a.example', ca })).destroy();
  });

  test.each<[string, HttpRule]>([
    ['a pattern with dots', { host: `a.example:${PORT}`, pathPattern: '/x/../*' }],
    ['a pattern without a slash', { host: `a.example:${PORT}`, pathPattern: '*' }],
    ['a pattern with a query', { host: `a.example:${PORT}`, pathPattern: '/*?x' }],
    ['no method at all', { host: `a.example:${PORT}`, methods: [] }],
    ['an address', { host: `127.0.0.1:${PORT}` }],
  ])('[MC-04] is closed to rules with %s', async (_what, rule) => {
    const { front } = await outside.open([rule]);
    expect((await front.ask(`${URL_OF_A}/x`)).status).toBe(403);
  });

  test('[MC-04] is left in the middle of an answer when that part is allowed no more', async () => {
    const port = await outside.listen((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart');
    });
    const part: HttpRule = { host: `a.example:${port}`, pathPattern: '/a' };
    const { front, session } = await outside.open([part]);
    const ask = async (): Promise<{ text: () => string; ended: Promise<unknown> }> => {
      const socket = await front.connect();
      let text = '';
      socket.on('data', (piece) => (text += piece.toString()));
      const ended = new Promise((resolve) =>
        socket.once('close', resolve).once('end', () => socket.destroy()),
      );
      socket.write(`GET http://a.example:${port}/a HTTP/1.1\r\nHost: a.example:${port}\r\n\r\n`);
      await until(() => text.endsWith('part'));
      return { text: () => text, ended };
    };
    const { ended } = await ask();
    // What still allows it does not disturb it.
    session.setAllow([{ ...part, methods: ['GET'] }]);
    expect(session.describe().refusedCount).toBe(0);
    session.setAllow([{ ...part, pathPattern: '/b' }]);
    await ended;
    expect(session.describe().refusals).toMatchObject([
      { reason: 'no longer on the allow-list of this session', method: 'GET', path: '/a', scheme: 'http' },
    ]);
  });
});

describe('a refusal', () => {
  test('[MC-04] names what would have to be allowed, and that is enough', async () => {
    const { front, session } = await outside.open([]);
    const asked = [
      ['GET', '/a/b?secret=1'],
      ['POST', '/a/*'],
      ['OPTIONS', '/ä'],
      ['PROPFIND', '/dav'],
      ['PUT', '/a/..%2fb'],
      ['GET', `/${'x'.repeat(3000)}`],
    ] as const;
    for (const [method, path] of asked) {
      const mark = session.mark();
      const url = `${URL_OF_A}${encodeURI(path).replaceAll('%25', '%')}`;
      expect((await front.ask(url, { method })).status).toBe(403);
      const [refused] = session.refusalsSince(mark);
      expect(JSON.stringify(refused)).not.toContain('secret');
      const rule = refused && ruleFor(refused);
      session.setAllow([rule ?? '']);
      expect((await front.ask(url, { method })).status).toBe(201);
      session.setAllow([]);
    }
    expect(session.describe().refusals.slice(0, 1)).toMatchObject([
      { host: 'a.example', port: PORT, scheme: 'http', method: 'GET', path: '/a/b' },
    ]);
  });

  test('[RS-15] never has the name and the password that stand in an address', async () => {
    const lines: unknown[] = [];
    const note = (fields: unknown): void => void lines.push(fields);
    const log = { debug: note, info: note, warn: note, error: note };
    const { front, session } = await outside.open(['a.example'], { log });
    const texts = await Promise.all([
      front.raw('GET http://me:hunter2@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n'),
      front.raw('GET http://me:hunter2@10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n'),
      front.raw('CONNECT me:hunter2@a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n'),
    ]);
    for (const text of texts) expect(text).toMatch(/^HTTP\/1\.1 40[03] /);
    expect(session.describe().refusedCount).toBe(3);
    expect(JSON.stringify([lines, session.describe(), texts])).not.toContain('hunter2');
  });
});
