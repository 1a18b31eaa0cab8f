import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { Outside } from '../../src/egress/outside.double.ts';
import { ProxyClient } from '../../src/egress/proxy-front.double.ts';
import type { WayOut } from '../../src/egress/way-out.ts';
import { Authority } from '../../test/support/certificates.ts';
import { RelayProgram, freePort } from './harness.ts';

const run = promisify(execFile);
const MiB = 1024 * 1024;

const folder = mkdtempSync(join(tmpdir(), 'hotcell-egress-'));
const authority = new Authority(folder, 'egress-tests');
const { cert, key } = authority.issue('server', ['DNS:a.example', 'DNS:b.example']);
const caFile = join(authority.folder, 'ca.pem');
const ca = readFileSync(caFile);
const outside = await Outside.start({ cert: readFileSync(cert), key: readFileSync(key) });
const programs: RelayProgram[] = [];

afterEach(async () => {
  await outside.endAll();
  for (const program of programs.splice(0)) {
    await program.ended;
    expect(program.words).toBe('');
  }
});
afterAll(() => {
  outside.close();
  rmSync(folder, { recursive: true });
});

/** The guest program on a port of this machine, as that of one session. */
async function relay(
  session: WayOut,
  port?: number,
): Promise<{ exec: RelayProgram; served: Promise<void>; client: ProxyClient }> {
  const own = port ?? (await freePort());
  const exec = new RelayProgram(own);
  programs.push(exec);
  const ready = Promise.withResolvers<undefined>();
  const served = session.serve(exec, () => ready.resolve(undefined));
  await ready.promise;
  return { exec, served, client: new ProxyClient(own) };
}

async function until(condition: () => boolean): Promise<void> {
  for (let rounds = 0; !condition(); rounds++) {
    if (rounds > 4000) throw new Error('it never came to that');
    await sleep(5);
  }
}

/** A tunnel to a server of the test, with a real handshake first, as far as the gate looks. */
async function tunnelTo(client: ProxyClient, port: number, hello: Buffer): Promise<Socket> {
  const { socket, text } = await client.tunnel(`a.example:${port}`);
  if (text !== '') throw new Error(text);
  socket.write(hello);
  return socket;
}

/** The least that passes for a handshake with a.example. */
const NAME = Buffer.from('a.example');
const list = Buffer.concat([Buffer.from([0, NAME.length + 3, 0, 0, NAME.length]), NAME]);
const extensions = Buffer.concat([Buffer.from([0, list.length + 4, 0, 0, 0, list.length]), list]);
const body = Buffer.concat([
  Buffer.from([3, 3]),
  Buffer.alloc(32),
  Buffer.from([0, 0, 2, 19, 1, 1, 0]),
  extensions,
]);
const HELLO = Buffer.concat([Buffer.from([22, 3, 1, 0, body.length + 4, 1, 0, 0, body.length]), body]);

describe('programs of a cell', () => {
  test('[RS-15] reach allowed hosts with curl and node as they are, and others with a reason', async () => {
    const { session } = await outside.open([
      `a.example:${outside.httpPort}`,
      `a.example:${outside.httpsPort}`,
    ]);
    const { client } = await relay(session);
    const proxy = `http://127.0.0.1:${client.port}`;
    const env = { PATH: process.env['PATH'], http_proxy: proxy, https_proxy: proxy };
    const plain = await run('curl', ['-sS', '-d', 'x=1', `http://a.example:${outside.httpPort}/x`], { env });
    expect(plain.stdout).toBe('answer to POST /x');
    const refused = await run('curl', ['-sS', 'http://b.example/'], { env });
    expect(refused.stdout).toContain('hotcell: egress to b.example:80 refused');
    await expect(run('curl', ['-sS', 'https://b.example/'], { env })).rejects.toThrow(/response 403/);
    const secure = ['-sS', '--cacert', caFile, `https://a.example:${outside.httpsPort}/y`];
    expect((await run('curl', secure, { env })).stdout).toBe('answer to GET /y');
    const script = (url: string): string => `fetch('${url}').then(r => r.text()).then(console.log)`;
    const own = { ...env, NODE_USE_ENV_PROXY: '1', NODE_EXTRA_CA_CERTS: caFile };
    const fetched = await run(process.execPath, ['-e', script(`https://a.example:${outside.httpsPort}/z`)], {
      env: own,
    });
    expect(fetched.stdout).toBe('answer to GET /z\n');
    await expect(run(process.execPath, ['-e', script('https://b.example/')], { env: own })).rejects.toThrow(
      /403/,
    );
  });

  test('[RS-15] get and send much, unchanged', async () => {
    const { session } = await outside.open([`a.example:${outside.tlsPort}`]);
    const { client } = await relay(session);
    const bytes = randomBytes(24 * MiB);
    const secure = await client.secure(`a.example:${outside.tlsPort}`, { servername: 'a.example', ca });
    secure.end(bytes);
    const hash = createHash('sha256');
    for await (const piece of secure) hash.update(piece as Buffer);
    expect(hash.digest('hex')).toBe(createHash('sha256').update(bytes).digest('hex'));
  });

  test('[RS-15] may end their side first, and so may servers', async () => {
    const port = await outside.listen((socket) => {
      let heard = 0;
      socket.on('data', (piece) => (heard += piece.length));
      socket.on('end', () => socket.end(`heard ${heard}`));
    });
    const early = await outside.listen((socket) => socket.end('farewell'));
    const { session } = await outside.open([`a.example:${port}`, `a.example:${early}`]);
    const { client } = await relay(session);
    const asking = await tunnelTo(client, port, HELLO);
    asking.end(Buffer.alloc(MiB));
    const answer = Buffer.concat((await asking.resume().toArray()) as Buffer[]).toString();
    expect(answer).toBe(`heard ${MiB + HELLO.length}`);
    const listening = await tunnelTo(client, early, HELLO);
    expect(Buffer.concat((await listening.toArray()) as Buffer[]).toString()).toBe('farewell');
    listening.destroy();
  });

  test('[RS-15] that read slowly or not at all cost no memory and hinder nobody', async () => {
    const senders: Socket[] = [];
    const port = await outside.listen((socket) => {
      senders.push(socket);
      const piece = Buffer.alloc(MiB);
      const send = (): void => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on('drain', send);
      send();
    });
    const { session } = await outside.open([`a.example:${port}`, `a.example:${outside.httpPort}`]);
    const { client, exec } = await relay(session);
    const before = process.memoryUsage().rss;
    const idle = await Promise.all(Array.from({ length: 20 }, () => tunnelTo(client, port, HELLO)));
    // Until nothing moves any more.
    let [last, still] = [-1, 0];
    while (still < 20) {
      const sent = senders.reduce((sum, socket) => sum + socket.bytesWritten, 0);
      still = sent === last ? still + 1 : 0;
      last = sent;
      await sleep(20);
      const answer = await client.ask(`http://a.example:${outside.httpPort}/`);
      expect(answer.status).toBe(201);
    }
    expect(exec.unwritten).toBeLessThan(MiB);
    // The pieces of the senders, and 20 windows in each of a few places.
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * MiB);
    const { VmRSS } = memoryOf(exec.child.pid);
    expect(VmRSS).toBeLessThan(40 * MiB);
    for (const socket of idle) socket.destroy();
    await until(() => senders.every((socket) => socket.destroyed));
  });

  test('[RS-15] have 200 connections at once', async () => {
    const { session } = await outside.open([`a.example:${outside.tlsPort}`]);
    const { client } = await relay(session);
    const options = { servername: 'a.example', ca };
    const all = await Promise.all(
      Array.from({ length: 200 }, () => client.secure(`a.example:${outside.tlsPort}`, options)),
    );
    const answers = await Promise.all(
      all.map(async (socket, index) => {
        socket.end(`number ${index} `.repeat(1000));
        return Buffer.concat((await socket.toArray()) as Buffer[]).toString();
      }),
    );
    expect(answers.every((text, index) => text === `number ${index} `.repeat(1000))).toBe(true);
    expect(session.describe().allowedCount).toBe(200);
  });

  test('[RS-15] wait for a connection when they have too many', async () => {
    const { session } = await outside.open([`a.example:${outside.httpPort}`]);
    const { client } = await relay(session);
    const held = await Promise.all(Array.from({ length: 256 }, () => client.connect()));
    const waiting = client.ask(`http://a.example:${outside.httpPort}/`);
    expect(await Promise.race([waiting, sleep(200)])).toBeUndefined();
    held[0]?.destroy();
    expect((await waiting).status).toBe(201);
    for (const socket of held) socket.destroy();
  });

  test('[RS-15] that reset a connection end it outside, and the other way round', async () => {
    const sockets: Socket[] = [];
    const port = await outside.listen((socket) => void sockets.push(socket.resume()));
    const { session } = await outside.open([`a.example:${port}`]);
    const { client } = await relay(session);
    const [first, second] = [await tunnelTo(client, port, HELLO), await tunnelTo(client, port, HELLO)];
    await until(() => sockets.length === 2);
    first.resetAndDestroy();
    await until(() => sockets.some(({ closed }) => closed));
    const ended = once(second.resume(), 'end');
    for (const socket of sockets) socket.resetAndDestroy();
    await ended;
    second.destroy();
  });
});

describe('the guest program', () => {
  test('[RS-15] ends with its input, and its connections with it', async () => {
    const { session } = await outside.open([`a.example:${outside.tlsPort}`]);
    const { exec, served, client } = await relay(session);
    const secure = await client.secure(`a.example:${outside.tlsPort}`, { servername: 'a.example', ca });
    secure.on('error', () => {});
    exec.closeStdin();
    await served;
    await exec.ended;
    await until(() => outside.served.size === 0);
    expect(exec.child.exitCode).toBe(0);
    secure.destroy();
  });

  test('[RS-15] that somebody kills can be started again for the same session', async () => {
    const { session } = await outside.open([`a.example:${outside.httpPort}`]);
    const { exec, served, client } = await relay(session);
    exec.child.kill('SIGKILL');
    await served;
    const again = await relay(session, client.port);
    expect((await again.client.ask(`http://a.example:${outside.httpPort}/`)).status).toBe(201);
  });

  test('[RS-15] waits for its port while another one holds it', async () => {
    const { session } = await outside.open([`a.example:${outside.httpPort}`]);
    const { exec, client } = await relay(session);
    const next = relay(session, client.port);
    await sleep(100);
    exec.closeStdin();
    expect((await (await next).client.ask(`http://a.example:${outside.httpPort}/`)).status).toBe(201);
  });

  test('[RS-15] listens on the loopback of the cell and nowhere else', async () => {
    const { session } = await outside.open([]);
    const { client } = await relay(session);
    const outer = connect({ host: '127.0.0.2', port: client.port });
    const [error] = (await once(outer, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNREFUSED');
  });
});

/** Bytes by name, of /proc. */
function memoryOf(pid: number | undefined): Record<string, number> {
  const lines = readFileSync(`/proc/${pid}/status`, 'utf8').matchAll(/^(\w+):\s+(\d+) kB$/gm);
  return Object.fromEntries([...lines].map(([, name, kilobytes]) => [name, Number(kilobytes) * 1024]));
}
