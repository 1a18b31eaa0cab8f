import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { Authority } from '../../test/support/certificates.ts';
import { Outside, codes } from './outside.double.ts';

const MiB = 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), 'hotcell-egress-'));
const authority = new Authority(folder, 'egress-tests');
const { cert, key } = authority.issue('server', ['DNS:a.example', 'DNS:b.example']);
const outside = await Outside.start({ cert: readFileSync(cert), key: readFileSync(key) });
afterEach(() => outside.endAll());
afterAll(() => {
  outside.close();
  rmSync(folder, { recursive: true });
});

describe('a plain request', () => {
  test('[RS-15] to an allowed name is sent on and its answer back', async () => {
    const { front, session } = await outside.open([`a.example:${outside.httpPort}`]);
    const answer = await front.ask(`http://A.example:${outside.httpPort}/path?x=1`, {
      method: 'POST',
      headers: {
        'Proxy-Authorization': 'Basic secret',
        'Proxy-Connection': 'keep-alive',
        Connection: 'x-hop, content-length',
        'X-Hop': 'no',
        'X-End': 'yes',
        'Content-Length': '4',
      },
      body: 'body',
    });
    expect(answer).toMatchObject({ status: 201, text: 'answer to POST /path?x=1' });
    expect(answer.headers['set-cookie']).toEqual(['a=1', 'b=2']);
    expect(answer.headers).toMatchObject({ 'x-own': 'yes', connection: 'close' });
    expect(answer.headers).not.toHaveProperty('keep-alive');
    expect(outside.seen.map(({ body }) => body)).toEqual(['body']);
    expect(outside.seen[0]?.request.headers).toEqual({
      host: `a.example:${outside.httpPort}`,
      'x-end': 'yes',
      'content-length': '4',
      connection: 'close',
    });
    expect(session.describe()).toMatchObject({ allowedCount: 1, refusedCount: 0 });
  });

  test('[RS-15] may have a body of unknown length, a large one, or none where one is usual', async () => {
    const { front } = await outside.open([`a.example:${outside.httpPort}`]);
    const url = `http://a.example:${outside.httpPort}/`;
    await front.ask(url, {
      method: 'PUT',
      headers: { 'Transfer-Encoding': 'chunked' },
      body: 'x'.repeat(3 * MiB),
    });
    await front.ask(url, { method: 'POST' });
    await front.ask(url, { method: 'HEAD' });
    expect(outside.seen.map(({ request, body }) => [request.method, body.length])).toEqual([
      ['PUT', 3 * MiB],
      ['POST', 0],
      ['HEAD', 0],
    ]);
  });

  test('[RS-15] to another name is refused and not resolved', async () => {
    const { front, session, resolved } = await outside.open(['a.example']);
    const answer = await front.ask('http://b.example/');
    expect(answer).toMatchObject({ status: 403, headers: { 'x-hotcell-refused': 'not_allowed' } });
    expect(answer.text).toContain(
      'hotcell: egress to b.example:80 refused: not on the allow-list of this session',
    );
    expect(await front.ask('http://a.example:8080/')).toMatchObject({ status: 403 });
    expect(await front.ask('http://127.0.0.1/')).toMatchObject({ status: 403 });
    expect([codes(session), resolved]).toEqual([['not_allowed', 'port', 'ip_literal'], []]);
  });

  test('[RS-15] to a name with a private address is refused', async () => {
    const { front } = await outside.open(['a.example'], { permit: [] });
    expect(await front.ask('http://a.example/')).toMatchObject({
      status: 403,
      headers: { 'x-hotcell-refused': 'private_address' },
    });
  });

  const request = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`;
  test.each([
    ['another Host', request('GET http://a.example/ HTTP/1.1', 'Host: b.example')],
    ['two Hosts', request('GET http://a.example/ HTTP/1.1', 'Host: a.example', 'Host: b.example')],
    ['the same Host twice', request('GET http://a.example/ HTTP/1.1', 'Host: a.example', 'Host: a.example')],
    ['no Host', request('GET http://a.example/ HTTP/1.1')],
    ['a Host with another port', request('GET http://a.example/ HTTP/1.1', 'Host: a.example:81')],
    ['a path only', request('GET / HTTP/1.1', 'Host: a.example')],
    ['somebody before the host', request('GET http://a.example@b.example/ HTTP/1.1', 'Host: a.example')],
    ['another protocol', request('GET https://a.example/ HTTP/1.1', 'Host: a.example')],
    [
      'a length and an encoding',
      request(
        'POST http://a.example/ HTTP/1.1',
        'Host: a.example',
        'Content-Length: 4',
        'Transfer-Encoding: chunked',
      ),
    ],
    [
      'two lengths',
      request('POST http://a.example/ HTTP/1.1', 'Host: a.example', 'Content-Length: 4', 'Content-Length: 5'),
    ],
    [
      'an unknown encoding',
      request('POST http://a.example/ HTTP/1.1', 'Host: a.example', 'Transfer-Encoding: gzip, chunked'),
    ],
    [
      'a hidden encoding',
      request('POST http://a.example/ HTTP/1.1', 'Host: a.example', 'Transfer-Encoding : chunked'),
    ],
    ['bare line feeds', 'GET http://a.example/ HTTP/1.1\nHost: a.example\n\n'],
    ['a bare carriage return', request('GET http://a.example/ HTTP/1.1', 'Host: a.example', 'X: a\rY: b')],
    ['a folded line', request('GET http://a.example/ HTTP/1.1', 'Host: a.example', ' b.example')],
    ['NUL in the host', request('GET http://a.example\0.b.example/ HTTP/1.1', 'Host: a.example')],
    ['no HTTP at all', '\x16\x03\x01\x00\x05hello'],
    ['a name that is none', request('CONNECT a_!.example:443 HTTP/1.1')],
  ])('[RS-15] with %s is refused', async (_what, text) => {
    const { front, session, resolved } = await outside.open(['a.example', 'b.example']);
    const answer = await front.raw(text);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toContain('x-hotcell-refused: malformed');
    expect([codes(session), resolved]).toEqual([['malformed'], []]);
  });

  test('[RS-15] is the only one of its connection', async () => {
    const { front, session, resolved } = await outside.open([`a.example:${outside.httpPort}`, 'b.example']);
    const first = `GET http://a.example:${outside.httpPort}/first HTTP/1.1\r\nHost: a.example:${outside.httpPort}\r\n\r\n`;
    const others = [
      'GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n',
      'CONNECT b.example:443 HTTP/1.1\r\n\r\n',
    ];
    for (const other of others) {
      const answer = await front.raw(first + other);
      expect(answer).not.toContain('200 Connection established');
    }
    expect(resolved.filter((name) => name !== 'a.example')).toEqual([]);
    expect(session.describe().allowedCount).toBeLessThanOrEqual(2);
  });

  test.each(['Content-Length: 100\r\n\r\npart', 'Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n'])(
    '[RS-15] whose answer is cut off does not look whole: %j',
    async (words) => {
      const port = await outside.listen((socket) => {
        socket.end(`HTTP/1.1 200 OK\r\n${words}`);
      });
      const { front } = await outside.open([`a.example:${port}`]);
      await expect(front.ask(`http://a.example:${port}/`)).rejects.toThrow(/aborted|socket hang up/);
    },
  );

  test.each([
    ['no HTTP', 'SSH-2.0-x\r\n'],
    ['another protocol', 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
    ['nothing', ''],
  ])('[RS-15] that is answered with %s gets a failure', async (_what, words) => {
    const port = await outside.listen((socket) => {
      socket.once('data', () => socket.end(words));
    });
    const { front } = await outside.open([`a.example:${port}`]);
    expect(await front.ask(`http://a.example:${port}/`)).toMatchObject({ status: 502 });
  });
});
