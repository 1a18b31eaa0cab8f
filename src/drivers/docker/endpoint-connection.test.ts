import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import Docker from 'dockerode';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { Authority, whyNoCertificates } from '../../../test/support/certificates.ts';
import { testThatNeeds } from '../../../test/support/needs.ts';
import { findEndpoint, type Endpoint, type EndpointSettings } from './endpoint.ts';

/** What a server was asked, and by whom. */
interface Heard {
  readonly port: number;
  readonly requests: string[];
}

const servers: Server[] = [];
let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-connection-'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

async function listen(server: Server, where: string | { port: number; host: string }): Promise<Heard> {
  const requests: string[] = [];
  server.on('request', (request, response) => {
    const { socket } = request;
    const peer = socket instanceof TLSSocket ? socket.getPeerCertificate().subject : undefined;
    requests.push(`${request.method} ${request.url} ${String(peer?.CN ?? 'nobody')}`);
    response.end('OK');
  });
  servers.push(server);
  if (typeof where === 'string') server.listen(where);
  else server.listen(where.port, where.host);
  await once(server, 'listening');
  const address = server.address();
  return { requests, port: typeof address === 'string' ? 0 : (address?.port ?? 0) };
}

async function ping(endpoint: Endpoint): Promise<string> {
  return String(await new Docker({ ...endpoint.connection }).ping());
}

const plain = (): Promise<Heard> => listen(createServer(), { port: 0, host: '127.0.0.1' });

describe('without TLS', () => {
  test('a request reaches a unix socket', async () => {
    const path = join(folder, 'engine.sock');
    const engine = await listen(createServer(), path);
    expect(await ping(findEndpoint({ host: `unix://${path}` }))).toBe('OK');
    expect(engine.requests).toEqual(['GET /_ping nobody']);
  });

  test('the environment cannot lead it elsewhere', async () => {
    const path = join(folder, 'other.sock');
    const [engine, other] = [await listen(createServer(), path), await plain()];
    vi.stubEnv('DOCKER_HOST', `tcp://127.0.0.1:${other.port}`);
    expect(await ping(findEndpoint({ host: `unix://${path}` }))).toBe('OK');
    expect({ engine: engine.requests.length, other: other.requests }).toEqual({ engine: 1, other: [] });
  });

  test('a request reaches a port, and no variable turns it into TLS', async () => {
    const [engine, other] = [await plain(), await plain()];
    vi.stubEnv('DOCKER_HOST', `tcp://127.0.0.1:${other.port}`);
    vi.stubEnv('DOCKER_TLS_VERIFY', '1');
    expect(await ping(findEndpoint({ host: `tcp://127.0.0.1:${engine.port}` }))).toBe('OK');
    vi.stubEnv('DOCKER_HOST', `ssh://127.0.0.1:${other.port}`);
    expect(await ping(findEndpoint({ host: `http://127.0.0.1:${engine.port}` }))).toBe('OK');
    expect({ engine: engine.requests.length, other: other.requests }).toEqual({ engine: 2, other: [] });
  });

  test('an IPv6 address reaches its port', async () => {
    const engine = await listen(createServer(), { port: 0, host: '::1' }).catch(() => undefined);
    // A machine without IPv6.
    if (engine === undefined) return;
    expect(await ping(findEndpoint({ host: `tcp://[::1]:${engine.port}` }))).toBe('OK');
    expect(engine.requests).toHaveLength(1);
  });
});

/** Words of OpenSSL, or what is left when the other side hangs up first. */
const REFUSED_BY_PEER = /SSL routines|socket hang up|ECONNRESET|EPIPE/;

const testTls = testThatNeeds(whyNoCertificates());

describe('with TLS', () => {
  let ours: Authority | undefined;
  let foreign: Authority | undefined;
  beforeAll(() => {
    if (whyNoCertificates() !== undefined) return;
    ours = new Authority(folder, 'ours');
    foreign = new Authority(folder, 'foreign');
    ours.issue('server', ['IP:127.0.0.1', 'DNS:localhost']);
    ours.issue('elsewhere', ['DNS:engine.example']);
    for (const authority of [ours, foreign]) {
      const { cert, key } = authority.issue('client', ['DNS:client']);
      cpSync(cert, join(authority.folder, 'cert.pem'));
      cpSync(key, join(authority.folder, 'key.pem'));
    }
    mkdirSync(join(folder, 'only-ca'));
    cpSync(join(ours.folder, 'ca.pem'), join(folder, 'only-ca/ca.pem'));
  });

  const file = (path: string): Buffer => readFileSync(join(folder, path));

  /** An engine that `ours` vouches for; it asks who calls, and with `strict` insists on it. */
  function secure({ name = 'server', strict = true } = {}): Promise<Heard> {
    const server = createTlsServer({
      cert: file(`ours/${name}.pem`),
      key: file(`ours/${name}-key.pem`),
      ca: file('ours/ca.pem'),
      requestCert: true,
      rejectUnauthorized: strict,
    });
    return listen(server, { port: 0, host: '127.0.0.1' });
  }

  const environment = (port: number, certs: string): EndpointSettings => ({
    DOCKER_HOST: `tcp://127.0.0.1:${port}`,
    DOCKER_TLS_VERIFY: '1',
    DOCKER_CERT_PATH: join(folder, certs),
  });

  /** A context as the docker command stores it, with the certificates of a folder. */
  function context(port: number, { certs = '', skip = false }): EndpointSettings {
    const config = mkdtempSync(join(folder, 'config-'));
    const id = createHash('sha256').update('engine').digest('hex');
    const docker = { Host: `tcp://127.0.0.1:${port}`, SkipTLSVerify: skip };
    mkdirSync(join(config, 'contexts/meta', id), { recursive: true });
    writeFileSync(
      join(config, 'contexts/meta', id, 'meta.json'),
      JSON.stringify({ Name: 'engine', Endpoints: { docker } }),
    );
    for (const name of certs === '' ? [] : ['ca.pem', 'cert.pem', 'key.pem']) {
      cpSync(join(folder, certs, name), join(config, 'contexts/tls', id, 'docker', name));
    }
    return { DOCKER_CONFIG: config, DOCKER_CONTEXT: 'engine' };
  }

  testTls('an engine that we can verify is told who we are', async () => {
    const engine = await secure();
    expect(await ping(findEndpoint(environment(engine.port, 'ours')))).toBe('OK');
    expect(engine.requests).toEqual(['GET /_ping client']);
  });

  testTls('an engine that somebody else vouches for hears nothing', async () => {
    const engine = await secure({ strict: false });
    await expect(ping(findEndpoint(environment(engine.port, 'foreign')))).rejects.toThrow(/certificate/);
    expect(engine.requests).toEqual([]);
  });

  testTls('not even if the environment of Node says that it may', async () => {
    const engine = await secure({ strict: false });
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    await expect(ping(findEndpoint(environment(engine.port, 'foreign')))).rejects.toThrow(/certificate/);
    await expect(ping(findEndpoint({ host: `https://127.0.0.1:${engine.port}` }))).rejects.toThrow(
      /certificate/,
    );
    expect(engine.requests).toEqual([]);
  });

  testTls('an engine with a certificate for another name hears nothing', async () => {
    const engine = await secure({ name: 'elsewhere', strict: false });
    await expect(ping(findEndpoint(environment(engine.port, 'ours')))).rejects.toThrow(/altnames/);
    expect(engine.requests).toEqual([]);
  });

  testTls('without a client certificate we are nobody, and a strict engine refuses', async () => {
    const [open, strict] = [await secure({ strict: false }), await secure()];
    expect(await ping(findEndpoint(environment(open.port, 'only-ca')))).toBe('OK');
    await expect(ping(findEndpoint(environment(strict.port, 'only-ca')))).rejects.toThrow(REFUSED_BY_PEER);
    expect({ open: open.requests, strict: strict.requests }).toEqual({
      open: ['GET /_ping nobody'],
      strict: [],
    });
  });

  testTls('https:// takes certificates from DOCKER_CERT_PATH', async () => {
    const engine = await secure();
    const settings = { host: `https://localhost:${engine.port}`, DOCKER_CERT_PATH: join(folder, 'ours') };
    expect(await ping(findEndpoint(settings))).toBe('OK');
    expect(engine.requests).toEqual(['GET /_ping client']);
  });

  testTls('DOCKER_TLS alone encrypts, but does not verify', async () => {
    const engine = await secure({ name: 'elsewhere' });
    const { DOCKER_TLS_VERIFY: on, ...rest } = environment(engine.port, 'ours');
    expect(await ping(findEndpoint({ ...rest, DOCKER_TLS: on }))).toBe('OK');
    expect(engine.requests).toEqual(['GET /_ping client']);
  });

  testTls('a context verifies with its own certificates', async () => {
    const engine = await secure();
    expect(await ping(findEndpoint(context(engine.port, { certs: 'ours' })))).toBe('OK');
    await expect(ping(findEndpoint(context(engine.port, { certs: 'foreign' })))).rejects.toThrow(
      /certificate/,
    );
    expect(engine.requests).toEqual(['GET /_ping client']);
  });

  testTls('a context with SkipTLSVerify does not, and still tells who we are', async () => {
    const [engine, open] = [await secure({ name: 'elsewhere' }), await secure({ strict: false })];
    expect(await ping(findEndpoint(context(engine.port, { certs: 'ours', skip: true })))).toBe('OK');
    expect(await ping(findEndpoint(context(open.port, { skip: true })))).toBe('OK');
    expect(engine.requests).toEqual(['GET /_ping client']);
    expect(open.requests).toEqual(['GET /_ping nobody']);
  });

  testTls('TLS is never given up for an engine that speaks plainly', async () => {
    const engine = await plain();
    await expect(ping(findEndpoint(environment(engine.port, 'ours')))).rejects.toThrow(REFUSED_BY_PEER);
    await expect(ping(findEndpoint(context(engine.port, { skip: true })))).rejects.toThrow(REFUSED_BY_PEER);
    expect(engine.requests).toEqual([]);
  });

  testTls('a context without certificates speaks plainly, and an engine with TLS hears nothing', async () => {
    const engine = await secure({ strict: false });
    await expect(ping(findEndpoint(context(engine.port, {})))).rejects.toThrow(REFUSED_BY_PEER);
    expect(engine.requests).toEqual([]);
  });
});
