import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request as httpRequest, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { Authority } from '../../test/support/certificates.ts';
import type { OpenOptions } from './gate.ts';
import type { HeaderInjection } from './header-injection.ts';
import { Outside, codes, until, type Opened } from './outside.double.ts';
import type { ProxyClient } from './proxy-front.double.ts';

const MiB = 1024 * 1024;
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
const open = (port = PORT): Promise<Opened> =>
  outside.open([`a.example:${port}`], { caBundle }, { inject: injectFor(port) });

/** A server of HTTPS that does this. */
async function serve(listener: RequestListener): Promise<number> {
  const server = createHttpsServer(certificate, listener);
  return outside.listen((socket) => void server.emit('connection', socket));
}

/** A request that is still being written. */
function begin(
  front: ProxyClient,
  { port, headers = {} }: { readonly port: number; readonly headers?: Record<string, string> },
): { sent: ReturnType<typeof httpRequest>; answered: Promise<IncomingMessage> } {
  const host = `a.example:${port}`;
  const sent = httpRequest({
    host: '127.0.0.1',
    port: front.port,
    path: `http://${host}/v1/messages`,
    method: 'POST',
    headers: { host, ...headers },
    agent: false,
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve);
    sent.once('error', reject);
  });
  return { sent, answered };
}

async function nextText(stream: IncomingMessage): Promise<string> {
  for (;;) {
    const piece: unknown = stream.read();
    if (Buffer.isBuffer(piece)) return piece.toString();
    await once(stream, 'readable');
  }
}

describe('what passes with headers of the gate', () => {
  test('[FL-08] events come one by one, and their beginning before the first of them', async () => {
    const steps: (() => void)[] = [];
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      for (const index of [1, 2, 3]) steps.push(() => response.write(`data: ${index}\n\n`));
      steps.push(() => response.end());
    });
    const { front } = await open(port);
    const { sent, answered } = begin(front, { port });
    sent.end('{}');
    const response = await answered;
    expect(response.headers['content-type']).toBe('text/event-stream');
    for (const index of [1, 2, 3]) {
      steps.shift()?.();
      expect(await nextText(response)).toBe(`data: ${index}\n\n`);
    }
    steps.shift()?.();
    await once(response.resume(), 'end');
  });

  test('[FL-08] a body and its answer pass at the same time', async () => {
    const port = await serve((request, response) => void request.pipe(response));
    const { front } = await open(port);
    const { sent, answered } = begin(front, { port, headers: { 'transfer-encoding': 'chunked' } });
    sent.write('0');
    const response = await answered;
    expect(await nextText(response)).toBe('0');
    for (const piece of ['one', 'two']) {
      sent.write(piece);
      expect(await nextText(response)).toBe(piece);
    }
    sent.end();
    await once(response.resume(), 'end');
  });

  test('[FL-08] a large body is not kept on the way: who does not read makes the sender wait', async () => {
    const begun = Promise.withResolvers<IncomingMessage>();
    const hash = createHash('sha256');
    const port = await serve((request, response) => {
      begun.resolve(request);
      request.on('end', () => response.end(hash.digest('hex')));
    });
    const { front } = await open(port);
    const { sent, answered } = begin(front, { port });
    const piece = randomBytes(MiB);
    const expected = createHash('sha256');
    let written = 0;
    const write = (): void => {
      while (written < 64) {
        written++;
        expected.update(piece);
        if (!sent.write(piece)) return;
      }
      sent.end();
    };
    sent.on('drain', write);
    write();
    const request = await begun.promise;
    // Buffers of the kernel and of streams are full some time: then nothing moves any more.
    let [before, rounds] = [-1, 0];
    await until(() => {
      rounds = before === written ? rounds + 1 : 0;
      before = written;
      return rounds === 50;
    });
    expect(written).toBeLessThan(32);
    request.on('data', (bytes: Buffer) => void hash.update(bytes));
    expect(await nextText(await answered)).toBe(expected.digest('hex'));
    expect(written).toBe(64);
  });

  test('[FL-08] a client that wants to keep its connection opens the next one by itself', async () => {
    const { front } = await open();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const host = `a.example:${PORT}`;
    for (const path of ['/1', '/2', '/3']) {
      const sent = httpRequest({
        host: '127.0.0.1',
        port: front.port,
        agent,
        path: `http://${host}${path}`,
        headers: { host },
      });
      sent.end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      await once(response.resume(), 'end');
      expect(response.statusCode).toBe(201);
    }
    agent.destroy();
    expect(outside.seen.map(({ request }) => request.headers['x-api-key'])).toEqual([VALUE, VALUE, VALUE]);
  });
});

describe('a tunnel to the port of plain HTTP', () => {
  const more: OpenOptions = { inject: [{ host: 'a.example', headers: { 'x-api-key': VALUE } }] };

  test('[FL-08] ends at the gate, and what is asked in it is checked as if it had been asked plainly', async () => {
    const { front, session } = await outside.open(['a.example'], { permit: [] }, more);
    for (const [host, status] of [
      ['a.example', 403],
      ['b.example', 400],
    ] as const) {
      const { socket, status: tunnel } = await front.tunnel('a.example:80');
      expect(tunnel).toBe(200);
      socket.write(`POST /v1/messages HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2\r\n\r\n{}`);
      const said = Buffer.concat((await socket.toArray()) as Buffer[]).toString();
      expect(said).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    }
    expect(session.describe().refusals).toMatchObject([
      {
        host: 'a.example',
        port: 443,
        scheme: 'https',
        method: 'POST',
        path: '/v1/messages',
        code: 'private_address',
      },
      { host: 'a.example', code: 'malformed' },
    ]);
  });

  test('[FL-08] carries no second tunnel', async () => {
    const { front, session, resolved } = await outside.open(['a.example', 'b.example'], { permit: [] }, more);
    const { socket } = await front.tunnel('a.example:80');
    socket.write('CONNECT b.example:443 HTTP/1.1\r\n\r\n');
    const said = Buffer.concat((await socket.toArray()) as Buffer[]).toString();
    expect(said).toMatch(/^HTTP\/1\.1 400 /);
    expect([codes(session), resolved]).toEqual([['malformed'], []]);
  });

  test('[FL-08] to a host without headers is what it was before', async () => {
    const { front, session } = await outside.open(['a.example', 'b.example'], {}, more);
    expect((await front.tunnel('b.example:80')).status).toBe(403);
    expect(codes(session)).toEqual(['port']);
  });

  /** What a Node says that fetches this with the proxy. */
  async function fetchInNode(front: ProxyClient, url: string): Promise<string> {
    const script = `const r = await fetch('${url}', {method: 'POST', body: '{}'}); console.log(r.status, await r.text());`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      env: { NODE_USE_ENV_PROXY: '1', http_proxy: `http://127.0.0.1:${front.port}` },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    child.stdout.on('data', (bytes: Buffer) => (said += bytes.toString()));
    await once(child, 'close');
    return said;
  }

  test("[FL-08] is how Node's fetch asks", async () => {
    const { front, session } = await outside.open(['a.example'], { permit: [] }, more);
    expect(await fetchInNode(front, 'http://a.example/v1/x')).toMatch(/^403 /);
    expect(session.describe().refusals).toMatchObject([{ port: 443, scheme: 'https', path: '/v1/x' }]);
  });

  const mayUse443 = process.geteuid?.() === 0;
  test.skipIf(!mayUse443)('[FL-08] leads to port 443 of the host, with the headers', async () => {
    // An address of the loopback that nobody else has.
    const address = '127.77.13.5';
    const heard: unknown[] = [];
    const server = createHttpsServer(certificate, (request, response) => {
      heard.push([request.url, request.headers['x-api-key'], request.headers.host]);
      response.end('hello');
    });
    server.listen(443, address);
    await once(server, 'listening');
    try {
      const options = { caBundle, lookup: () => Promise.resolve([address]) };
      const { front } = await outside.open(['a.example'], options, more);
      expect(await fetchInNode(front, 'http://a.example/v1/x')).toBe('200 hello\n');
      expect((await front.ask('http://a.example/v1/y')).text).toBe('hello');
      expect(heard).toEqual([
        ['/v1/x', VALUE, 'a.example'],
        ['/v1/y', VALUE, 'a.example'],
      ]);
    } finally {
      server.close();
    }
  });
});
