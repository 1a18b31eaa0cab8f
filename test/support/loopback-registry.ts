import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { toTar, type TarEntry } from '../../src/lib/tar-archive.ts';

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const MANIFEST_LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
const CONFIG = 'application/vnd.docker.container.image.v1+json';
const LAYER = 'application/vnd.docker.image.rootfs.diff.tar.gzip';
const CHUNK = 64 * 1024;

/** What a registry does with a request, other than to answer it well. */
export type Misbehaviour =
  'hang' | 'fail' | { readonly pauseMs: number } | { readonly hangAfterBytes: number };

interface Stored {
  readonly type: string;
  readonly content: Buffer;
}

/**
 * A small registry on 127.0.0.1, where engines accept HTTP: the part of the Distribution API that a pull needs.
 * Every image in it is made by the test.
 */
export class LoopbackRegistry implements AsyncDisposable {
  /** Such as `127.0.0.1:40123`; names of images begin with it. */
  readonly host: string;
  /** Every request so far, such as `GET /v2/python/manifests/3`. */
  readonly requests: string[] = [];
  /** By what the path contains; the first that fits. */
  readonly misbehaviours = new Map<string, Misbehaviour>();
  readonly #server: Server;
  readonly #blobs = new Map<string, Stored>();
  readonly #manifests = new Map<string, Stored>();

  private constructor(server: Server) {
    this.#server = server;
    this.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<LoopbackRegistry> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new LoopbackRegistry(server);
  }

  /** Makes an image with one layer for each list of files. Returns its name by tag and by digest. */
  publish(
    repository: string,
    tag: string,
    layers: readonly (readonly TarEntry[])[],
  ): { name: string; byDigest: string } {
    const archives = layers.map((files) => toTar(files));
    const config = {
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { Cmd: ['/bin/sh'] },
      rootfs: { type: 'layers', diff_ids: archives.map(digestOf) },
      history: archives.map(() => ({ created_by: 'a test' })),
    };
    const manifest = {
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: this.#keep(CONFIG, Buffer.from(JSON.stringify(config))),
      layers: archives.map((archive) => this.#keep(LAYER, gzipSync(archive, { level: 1 }))),
    };
    const digest = this.#tag(repository, tag, {
      type: MANIFEST,
      content: Buffer.from(JSON.stringify(manifest)),
    });
    return { name: `${this.host}/${repository}:${tag}`, byDigest: `${this.host}/${repository}@${digest}` };
  }

  /** An image that exists for one platform only, and that is not this one. */
  publishForeign(repository: string, tag: string): string {
    const content = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: MANIFEST_LIST,
        manifests: [
          {
            mediaType: MANIFEST,
            digest: digestOf(Buffer.from('never asked for')),
            size: 15,
            platform: { os: 'linux', architecture: 's390x' },
          },
        ],
      }),
    );
    this.#tag(repository, tag, { type: MANIFEST_LIST, content });
    return `${this.host}/${repository}:${tag}`;
  }

  countRequests(part: string): number {
    return this.requests.filter((request) => request.includes(part)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #keep(mediaType: string, content: Buffer): { mediaType: string; size: number; digest: string } {
    const digest = digestOf(content);
    this.#blobs.set(digest, { type: 'application/octet-stream', content });
    return { mediaType, size: content.length, digest };
  }

  #tag(repository: string, tag: string, manifest: Stored): string {
    const digest = digestOf(manifest.content);
    this.#manifests.set(`${repository}/${tag}`, manifest);
    this.#manifests.set(`${repository}/${digest}`, manifest);
    return digest;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(request.url ?? '');
    this.requests.push(`${request.method} ${path}`);
    const misbehaviour = [...this.misbehaviours].find(([part]) => path.includes(part))?.[1];
    if (misbehaviour === 'hang') return;
    if (misbehaviour === 'fail') {
      response.writeHead(500).end();
      return;
    }
    if (path === '/v2/') {
      response.writeHead(200, { 'docker-distribution-api-version': 'registry/2.0' }).end('{}');
      return;
    }
    const [, repository = '', kind = '', which = ''] =
      /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(path) ?? [];
    const stored =
      kind === 'manifests' ? this.#manifests.get(`${repository}/${which}`) : this.#blobs.get(which);
    if (stored === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ errors: [{ code: 'MANIFEST_UNKNOWN', message: 'manifest unknown' }] }));
      return;
    }
    response.writeHead(200, {
      'content-type': stored.type,
      'content-length': stored.content.length,
      'docker-content-digest': digestOf(stored.content),
    });
    if (request.method === 'HEAD') response.end();
    else await send(response, stored.content, misbehaviour);
  }
}

async function send(
  response: ServerResponse,
  content: Buffer,
  misbehaviour: Exclude<Misbehaviour, string> | undefined,
): Promise<void> {
  if (misbehaviour === undefined) {
    response.end(content);
    return;
  }
  const until = 'hangAfterBytes' in misbehaviour ? misbehaviour.hangAfterBytes : content.length;
  for (let at = 0; at < Math.min(until, content.length); at += CHUNK) {
    response.write(content.subarray(at, Math.min(at + CHUNK, until)));
    if ('pauseMs' in misbehaviour) await sleep(misbehaviour.pauseMs);
  }
  if (until >= content.length) response.end();
}

function digestOf(content: Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
