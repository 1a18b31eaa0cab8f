import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { Authority } from '../../test/support/certificates.ts';
import { SILENT_LOG, type Log } from '../core/log.ts';
import { Outside, until } from './outside.double.ts';

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

describe('a session', () => {
  test('[RS-15] can be allowed more while it runs', async () => {
    const { front, session } = await outside.open([]);
    expect((await front.tunnel(`a.example:${outside.tlsPort}`)).status).toBe(403);
    session.setAllow([`a.example:${outside.tlsPort}`]);
    (await front.secure(`a.example:${outside.tlsPort}`, { servername: 'a.example', ca })).destroy();
    expect(session.describe()).toMatchObject({
      allow: [`a.example:${outside.tlsPort}`],
      allowedCount: 1,
      refusedCount: 1,
    });
  });

  test('[RS-15] that is allowed less loses the connections to those hosts, and no other', async () => {
    const { front, session } = await outside.open([
      `a.example:${outside.tlsPort}`,
      `b.example:${outside.tlsPort}`,
    ]);
    const [first, second] = await Promise.all([
      front.secure(`a.example:${outside.tlsPort}`, { servername: 'a.example', ca }),
      front.secure(`b.example:${outside.tlsPort}`, { servername: 'b.example', ca }),
    ]);
    const mark = session.mark();
    first.on('error', () => {});
    const ended = once(first.resume(), 'end');
    session.setAllow([`b.example:${outside.tlsPort}`]);
    await ended;
    await until(() => !outside.served.has('a.example'));
    second.write('still');
    expect(String((await once(second, 'data'))[0])).toBe('still');
    second.destroy();
    expect(session.refusalsSince(mark)).toMatchObject([
      { host: 'a.example', code: 'not_allowed', reason: 'no longer on the allow-list of this session' },
    ]);
    expect((await front.tunnel(`a.example:${outside.tlsPort}`)).status).toBe(403);
  });

  test.each(['tunnel', 'plain request'])(
    '[RS-15] that is allowed less while a name is resolved says nothing to its host by a %s',
    async (way) => {
      const heard: string[] = [];
      const port = await outside.listen((socket) => {
        socket.on('data', (piece) => heard.push(piece.toString()));
        socket.on('close', () => heard.push('closed'));
        socket.resume();
      });
      const answer = Promise.withResolvers<readonly string[]>();
      const { front, session, resolved } = await outside.open([`a.example:${port}`], {
        lookup: () => answer.promise,
      });
      const question = way === 'tunnel' ? `CONNECT a.example:${port}` : `GET http://a.example:${port}/`;
      const asked = front.raw(`${question} HTTP/1.1\r\nHost: a.example:${port}\r\n\r\n`);
      await until(() => resolved.length === 1);
      session.setAllow([]);
      answer.resolve(['127.0.0.1']);
      expect(await asked).toBe('');
      await until(() => heard.length > 0);
      expect(heard).toEqual(['closed']);
      expect(session.describe()).toMatchObject({ allowedCount: 0, refusedCount: 1 });
    },
  );

  test('[RS-15] knows what was refused since a moment, and keeps a bounded number', async () => {
    const lines: string[] = [];
    const log: Log = { ...SILENT_LOG, info: (fields) => void lines.push(String(fields['host'])) };
    const { front, session } = await outside.open([], { log });
    await front.tunnel('first.example:443');
    const mark = session.mark();
    expect(session.refusalsSince(mark)).toEqual([]);
    await front.tunnel('second.example:443');
    expect(session.refusalsSince(mark)).toMatchObject([{ host: 'second.example' }]);
    for (let round = 0; round < 150; round++) await front.tunnel(`n${round}.example:443`);
    const { refusals, refusedCount: count } = session.describe();
    expect([count, refusals.length, refusals.at(-1)?.host]).toEqual([152, 100, 'n149.example']);
    expect(session.refusalsSince(mark).length).toBe(100);
    expect(session.refusalsSince(151)).toMatchObject([{ host: 'n149.example' }]);
    // One that asks without end does not fill the log. The minute may end in between.
    expect(lines.length).toBeLessThanOrEqual(120);
  });

  test('[RS-15] writes names of programs down in printable characters only', async () => {
    const { front, session } = await outside.open([]);
    await front.raw('CONNECT \x1b[31m\xff:443 HTTP/1.1\r\n\r\n');
    await front.raw(`CONNECT ${'a'.repeat(5000)}:443 HTTP/1.1\r\n\r\n`);
    const hosts = session.describe().refusals.map(({ host }) => host);
    expect(hosts.length).toBe(2);
    for (const host of hosts) expect(host).toMatch(/^[\x21-\x7e]{0,260}$/);
  });

  test('[RS-15] does not see what another one may reach or was refused', async () => {
    const { gate, front, session } = await outside.open([`a.example:${outside.tlsPort}`]);
    const other = gate.open([]);
    const otherFront = await outside.front(other);
    expect((await otherFront.tunnel(`a.example:${outside.tlsPort}`)).status).toBe(403);
    (await front.secure(`a.example:${outside.tlsPort}`, { servername: 'a.example', ca })).destroy();
    expect([session.describe().refusedCount, other.describe().allowedCount]).toEqual([0, 0]);
  });

  test('[RS-15] that is closed has no connections any more and takes none', async () => {
    const { front, session } = await outside.open([`a.example:${outside.tlsPort}`]);
    const secure = await front.secure(`a.example:${outside.tlsPort}`, { servername: 'a.example', ca });
    secure.on('error', () => {});
    const ended = once(secure.resume(), 'end');
    session.close();
    await ended;
    await until(() => outside.served.size === 0);
    expect((await front.tunnel(`a.example:${outside.tlsPort}`)).text).toBe('');
    expect((await front.tunnel(`a.example:${outside.tlsPort}`)).status).not.toBe(200);
  });
});
