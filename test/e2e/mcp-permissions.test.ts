import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/client';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RunReply } from '../../src/wire/run-code.ts';
import { Authority, whyNoCertificates } from '../support/certificates.ts';
import { call, run } from '../support/mcp-client.ts';
import {
  CONTAINER,
  McpPlace,
  McpServer,
  PRELOAD,
  describeModes,
  type McpMode,
  type McpServerOptions,
} from '../support/mcp-server.ts';
import { describeThatNeeds } from '../support/needs.ts';

/** Requests that came through, such as `GET /a`. */
const seen: string[] = [];
const answer: RequestListener = (request, response) => {
  seen.push(`${request.method} ${request.url}`);
  request.resume();
  response.end(`answer to ${request.method} ${request.url}`);
};

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const fetching = (url: string, init = '{}'): string =>
  `const reply = await fetch("${url}", ${init}); if (!reply.ok) throw new Error(reply.statusText);
console.log(reply.status, await reply.text())`;

describeThatNeeds(whyNoCertificates())('permissions', () => {
  // Permissions are made of walls that the contract holds every driver to.
  describeModes([PRELOAD, CONTAINER], tests);
});

function tests(mode: McpMode): void {
  let place: McpPlace;
  let granted: string;
  let servers: Server[];
  let server: McpServer;
  const hosts = { http: '', https: '' };
  const start = (options: Partial<McpServerOptions> = {}): Promise<McpServer> =>
    McpServer.start(place, {
      mode,
      testNames: true,
      args: ['--set', 'sessions.egress.permit=127.0.0.0/8', '--set', `mcp.grantable.file=${granted}`],
      env: {
        SSL_CERT_FILE: join(place.data, 'ours', 'ca.pem'),
        HOTCELL_MCP_GRANTABLE_ENV: 'GREETING_*',
        GREETING_WORD: 'good morning',
        GREETINGLESS: 'a secret',
      },
      ...options,
    });

  beforeAll(async () => {
    place = new McpPlace();
    granted = join(place.data, 'granted');
    mkdirSync(granted);
    const issued = new Authority(place.data, 'ours').issue('server', ['DNS:secure.test']);
    const [cert, key] = [readFileSync(issued.cert), readFileSync(issued.key)];
    servers = [createHttpServer(answer), createHttpsServer({ cert, key }, answer)];
    const [http = 0, https = 0] = await Promise.all(servers.map(listen));
    hosts.http = `plain.test:${http}`;
    hosts.https = `secure.test:${https}`;
    server = await start();
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    for (const each of servers) each.close();
    place[Symbol.dispose]();
  });
  afterEach(() => void seen.splice(0));

  /** In a session of its own, so that no test has the permissions of another. */
  async function open(client: Client = server.client): Promise<Hand> {
    const { structured } = await call(client, 'create_session');
    return new Hand(client, String(structured['session_id']));
  }

  describe.each(['http', 'https'] as const)('%s', (scheme) => {
    test('[MC-02, MC-04] a denial names the permission; with it the same code works, until it is revoked', async () => {
      await using hand = await open();
      const code = fetching(`${scheme}://${hosts[scheme]}/v1/a`);
      const denied = await hand.run(code);
      expect(denied).toMatchObject({ status: 'denied', success: false, stdout: '' });
      const [denial] = denied.denials;
      expect(denial?.permission).toMatchObject({ type: 'http', host: hosts[scheme] });
      expect(seen).toEqual([]);

      expect(denial?.grant?.tool).toBe('grant_permission');
      const allowing = denial?.grant?.arguments ?? {};
      expect((await call(server.client, 'grant_permission', allowing)).failed).toBe(false);
      expect(await hand.run(code)).toMatchObject({
        status: 'ok',
        stdout: '200 answer to GET /v1/a\n',
        denials: [],
      });

      const { structured } = await call(server.client, 'revoke_permission', allowing);
      expect(structured).toMatchObject({ revoked: true, permissions: [] });
      expect(await hand.run(code)).toMatchObject({ status: 'denied', stdout: '' });
      expect(seen).toEqual(['GET /v1/a']);
    });

    test('[MC-04] a permission for a part of a host is one for that part', async () => {
      await using hand = await open();
      const host = hosts[scheme];
      await hand.grant({ type: 'http', host, pathPattern: '/v1/*', methods: ['GET'] });
      const base = `${scheme}://${host}`;
      expect(await hand.run(fetching(`${base}/v1/a?b=c`))).toMatchObject({
        status: 'ok',
        stdout: '200 answer to GET /v1/a?b=c\n',
        stderr: '',
      });
      const refused: [string, string, object][] = [
        ['/v2/a', '{}', { pathPattern: '/v2/a', methods: ['GET'] }],
        ['/v1/a', '{ method: "POST", body: "x" }', { pathPattern: '/v1/a', methods: ['POST'] }],
        ['/v1/%2e%2e/v2', '{}', {}],
      ];
      for (const [path, init, part] of refused) {
        const reply = await hand.run(fetching(`${base}${path}`, init));
        expect(reply).toMatchObject({ status: 'denied', stdout: '' });
        expect(reply.denials[0]?.permission).toMatchObject({ type: 'http', host, ...part });
      }
      expect(seen).toEqual(['GET /v1/a?b=c']);
    });

    test('[MC-04] programs of other languages reach a whole host, too', async () => {
      await using hand = await open();
      await hand.grant({ type: 'http', host: hosts[scheme] });
      const code = `import urllib.request
print(urllib.request.urlopen("${scheme}://${hosts[scheme]}/python").read().decode())`;
      const reply = await hand.run(code, { language: 'python' });
      expect(reply).toMatchObject({ status: 'ok', stdout: 'answer to GET /python\n' });
    });

    test('[MC-04] whoever goes around fetch gets no further', async () => {
      await using hand = await open();
      await hand.grant({ type: 'http', host: hosts[scheme], pathPattern: '/v1/*', methods: ['GET'] });
      const url = `${scheme}://${hosts[scheme]}/v2/a`;
      const code = `try { console.log((await Bun.fetch("${url}")).status === 200) } catch { console.log(false) }`;
      expect(await hand.run(code)).toMatchObject({ stdout: 'false\n' });
      const python = `import urllib.request
try:
    print(urllib.request.urlopen("${url}").status)
except Exception as error:
    print("refused")`;
      expect(await hand.run(python, { language: 'python' })).toMatchObject({ stdout: 'refused\n' });
      expect(seen).toEqual([]);
    });
  });

  test('[MC-04] servers of the code itself need no permission where code may have them', async () => {
    await using hand = await open();
    await hand.grant({ type: 'http', host: hosts.https, methods: ['GET'] });
    const code = `const own = Bun.serve({ port: 0, fetch: () => new Response("mine") });
console.log(await (await fetch(own.url)).text()); own.stop(true)`;
    const reply = await hand.run(code);
    expect([reply.status, reply.stdout]).toEqual(mode.mode === 'preload' ? ['error', ''] : ['ok', 'mine\n']);
  });

  test('[MC-04] variables: what was granted, and nothing else', async () => {
    await using hand = await open();
    const code = 'console.log(process.env.GREETING_WORD ?? "none", process.env.GREETINGLESS ?? "none")';
    const before = await hand.run(code);
    // In a container nothing asks beforehand: what was not granted is not there.
    expect(before).toMatchObject(
      mode.mode === 'preload'
        ? { status: 'denied', denials: [{ permission: { type: 'env', variables: ['GREETING_WORD'] } }] }
        : { status: 'ok', stdout: 'none none\n' },
    );
    const wanted = { type: 'env', variables: ['GREETING_WORD'] };
    await hand.grant(wanted);
    expect(await hand.run(code)).toMatchObject({ status: 'ok', stdout: 'good morning none\n' });
    const other = await call(server.client, 'grant_permission', {
      ...wanted,
      variables: ['GREETINGLESS'],
      session_id: hand.id,
    });
    expect([other.failed, other.text]).toEqual([true, expect.stringContaining('mcp.grantable.env')]);
    await call(server.client, 'revoke_permission', { ...wanted, session_id: hand.id });
    expect((await hand.run(code)).stdout).not.toContain('good morning');
    expect(server.log).not.toContain('good morning');
  });

  /** A file of this machine that may be granted. */
  function makeFile(): { readonly path: string; readonly reading: string } {
    const path = join(granted, 'note.txt');
    writeFileSync(path, 'of the machine');
    return { path, reading: `console.log(await Bun.file("${path}").text())` };
  }

  if (mode.mode === 'container') {
    test('[MC-04] files of this machine are not there, and cannot be granted', async () => {
      await using hand = await open();
      const { path, reading } = makeFile();
      expect((await hand.run(reading)).stdout).toBe('');
      const wanted = { type: 'file', path, operations: ['read'], session_id: hand.id };
      const refused = await call(server.client, 'grant_permission', wanted);
      expect([refused.failed, refused.text]).toEqual([true, expect.stringContaining('write_file')]);
    });
  } else {
    test('[MC-04] files of this machine can be read as long as it is granted, and not written', async () => {
      await using hand = await open();
      const { path, reading } = makeFile();
      const denied = await hand.run(reading);
      expect(denied).toMatchObject({
        status: 'denied',
        denials: [{ permission: { type: 'file', path, operations: ['read'] } }],
      });
      const allowing = denied.denials[0]?.grant?.arguments ?? {};
      await call(server.client, 'grant_permission', allowing);
      expect(await hand.run(reading)).toMatchObject({ status: 'ok', stdout: 'of the machine\n' });
      expect(await hand.run(`await Bun.write("${path}", "changed")`)).toMatchObject({ status: 'denied' });
      const bash = await hand.run(`echo changed > "${path}"`, { language: 'bash' });
      expect([bash.success, readFileSync(path, 'utf8')]).toEqual([false, 'of the machine']);
      await call(server.client, 'revoke_permission', allowing);
      expect(await hand.run(reading)).toMatchObject({ status: 'denied', stdout: '' });
      const outside = await call(server.client, 'grant_permission', { ...allowing, path: '/etc/hostname' });
      expect([outside.failed, outside.text]).toEqual([true, expect.stringContaining('mcp.grantable.file')]);
    });
  }

  test.each(['legacy', 'modern'] as const)(
    '[MC-04] whoever can be asked is, and a yes is enough, %s',
    async (era) => {
      const asked: string[] = [];
      let decision = 'deny';
      await using asking = await start({
        era,
        answer: ({ message }) => {
          asked.push(message);
          return { action: 'accept', content: { decision } };
        },
      });
      const code = fetching(`http://${hosts.http}/asked`);
      const { structured } = await call(asking.client, 'create_session');
      const session_id = structured['session_id'];
      expect((await run(asking.client, { code, session_id })).reply).toMatchObject({ status: 'denied' });
      expect([asked, seen]).toEqual([[expect.stringContaining(hosts.http)], []]);
      decision = 'allow';
      expect((await run(asking.client, { code, session_id })).reply).toMatchObject({
        status: 'ok',
        stdout: '200 answer to GET /asked\n',
      });
      expect(asked).toHaveLength(2);
      expect((await run(asking.client, { code, session_id })).reply).toMatchObject({ status: 'ok' });
      expect(asked).toHaveLength(2);
    },
  );
}

/** A session that is used by its handle. */
class Hand implements AsyncDisposable {
  readonly id: string;
  readonly #client: Client;

  constructor(client: Client, id: string) {
    this.#client = client;
    this.id = id;
  }

  async run(code: string, more: Record<string, unknown> = {}): Promise<RunReply> {
    return (await run(this.#client, { code, session_id: this.id, ...more })).reply;
  }

  async grant(permission: Record<string, unknown>): Promise<void> {
    const { failed, text } = await call(this.#client, 'grant_permission', {
      ...permission,
      session_id: this.id,
    });
    expect([failed, text]).toEqual([false, text]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await call(this.#client, 'destroy_session', { session_id: this.id });
  }
}
