import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Preset } from '../../src/egress/presets.ts';

/** One member of a tarball; anything may stand in it. */
export interface Member {
  readonly path: string;
  readonly content?: string | Buffer;
  readonly type?: '0' | '1' | '2' | '3' | '5';
  readonly target?: string;
  readonly mode?: number;
}

export interface Published {
  readonly name: string;
  readonly version?: string;
  readonly members?: readonly Member[];
  /** What the registry says of it, beside name, version and tarball. */
  readonly manifest?: Readonly<Record<string, unknown>>;
  readonly publishedAt?: string;
  /** Instead of the true checksum. */
  readonly integrity?: string;
  /** Instead of the true address. */
  readonly tarball?: string;
}

/** The gate is told that this name is on the loopback. */
const HOST = 'registry.example.org';

/** A small registry of npm on 127.0.0.1. Every package in it is made by the test. */
export class NpmRegistry implements AsyncDisposable {
  /** Every request so far, such as `/zod`. */
  readonly requests: string[] = [];
  /** Requests for these paths are never answered. */
  readonly hangs = new Set<string>();
  readonly #server: Server;
  readonly #manifests = new Map<string, Record<string, unknown>>();
  readonly #times = new Map<string, Record<string, string>>();
  readonly #tarballs = new Map<string, Buffer>();

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const path = decodeURIComponent(request.url ?? '');
      this.requests.push(path);
      if (!this.hangs.has(path)) this.#answer(path, response);
    });
  }

  static async start(): Promise<NpmRegistry> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new NpmRegistry(server);
  }

  get authority(): string {
    return `${HOST}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** What the gate must know of it. */
  get preset(): Preset {
    return { hosts: [this.authority], variables: { npm_config_registry: `http://${this.authority}/` } };
  }

  publish(published: Published): void {
    const { name, version = '1.0.0', members = [], manifest = {} } = published;
    const own: Member = {
      path: 'package/package.json',
      content: JSON.stringify({ name, version, main: 'index.js', ...manifest }),
    };
    const isOwn = members.some(({ path }) => path === own.path);
    const packed = gzipSync(rawTar([...(isOwn ? [] : [own]), ...members]), { level: 1 });
    const path = `/${name}/-/${version}.tgz`;
    this.#tarballs.set(path, packed);
    const sum = `sha512-${createHash('sha512').update(packed).digest('base64')}`;
    const dist = {
      tarball: published.tarball ?? `http://${this.authority}${path}`,
      integrity: published.integrity ?? sum,
    };
    const versions = this.#manifests.get(name) ?? {};
    versions[version] = { name, version, ...manifest, dist };
    this.#manifests.set(name, versions);
    const times = this.#times.get(name) ?? {};
    times[version] = published.publishedAt ?? '2020-01-01T00:00:00.000Z';
    this.#times.set(name, times);
  }

  #answer(path: string, response: ServerResponse): void {
    const tarball = this.#tarballs.get(path);
    if (tarball !== undefined) {
      response.end(tarball);
      return;
    }
    const name = path.slice(1);
    const versions = this.#manifests.get(name);
    if (versions === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
      return;
    }
    const latest = Object.keys(versions).at(-1);
    const time = this.#times.get(name);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ name, 'dist-tags': { latest }, versions, time }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Writes what no honest program would. */
export function rawTar(members: readonly Member[]): Buffer {
  return Buffer.concat([...members.flatMap(toMember), Buffer.alloc(1024)]);
}

function toMember({ path, content = '', type = '0', target = '', mode = 0o644 }: Member): Buffer[] {
  const bytes = Buffer.from(content);
  const header = Buffer.alloc(512);
  header.write(path, 0, 100);
  header.write(mode.toString(8).padStart(7, '0'), 100);
  header.write(bytes.length.toString(8).padStart(11, '0'), 124);
  header.write('14000000000', 136);
  header.write(' '.repeat(8), 148);
  header.write(type, 156);
  header.write(target, 157, 100);
  header.write('ustar\u000000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return [header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
}
