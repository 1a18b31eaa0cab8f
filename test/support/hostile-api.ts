import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Authority } from './certificates.ts';
import { waitFor } from './leftovers.ts';

/** Stands for the API of the agent: a server of this machine that has a certificate for its name. */
export class Api {
  readonly name = hostname().toLowerCase();
  readonly requests: { line: string; keys: string[]; host: string | undefined; body: string }[] = [];
  readonly #folder: string;
  readonly #server: Server;

  private constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), 'hotcell-api-'));
    const { cert, key } = new Authority(this.#folder, 'authority').issue('api', [`DNS:${this.name}`]);
    writeFileSync(this.bundle, readFileSync(join(this.#folder, 'authority/ca.pem')));
    this.#server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
      let body = '';
      request.on('data', (bytes: Buffer) => (body += bytes.toString()));
      request.on('end', () => {
        const keys = request.rawHeaders.flatMap((name, index) =>
          index % 2 === 0 && /^x[-_]api[-_]key$/i.test(name) ? [request.rawHeaders[index + 1] ?? ''] : [],
        );
        this.requests.push({
          line: `${request.method} ${request.url}`,
          keys,
          host: request.headers.host,
          body,
        });
        response.end('{}');
      });
    });
  }

  static async start(): Promise<Api> {
    const api = new Api();
    api.#server.listen(0, '0.0.0.0');
    await once(api.#server, 'listening');
    return api;
  }

  get host(): string {
    return `${this.name}:${(this.#server.address() as AddressInfo).port}`;
  }

  get bundle(): string {
    return join(this.#folder, 'bundle.pem');
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await waitFor('the API has stopped', () => !this.#server.listening);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
