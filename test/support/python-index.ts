import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Preset } from '../../src/egress/presets.ts';
import { rawTar } from './npm-registry.ts';

/** The gate is told that this name is on the loopback. */
const HOST = 'index.example.org';

/** Puts files into an archive as they are named, which is what a wheel is. */
const ZIP = `import io, json, sys, zipfile
out = io.BytesIO()
with zipfile.ZipFile(out, 'w') as archive:
    for name, text in json.load(sys.stdin).items():
        archive.writestr(name, text)
sys.stdout.buffer.write(out.getvalue())`;

export interface Wheel {
  readonly name: string;
  readonly version?: string;
  readonly files: Readonly<Record<string, string>>;
  readonly requires?: readonly string[];
}

/** A small index of Python packages on 127.0.0.1. Every package in it is made by the test. */
export class PythonIndex implements AsyncDisposable {
  readonly #server: Server;
  readonly #files = new Map<string, Buffer>();
  readonly #links = new Map<string, string[]>();

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', ({ url = '' }, response) => {
      const [, project] = /^\/simple\/([^/]+)\/?$/.exec(url) ?? [];
      const links = project === undefined ? undefined : this.#links.get(project);
      const found = links === undefined ? this.#files.get(url) : links.join('\n');
      if (found === undefined) response.writeHead(404).end();
      else response.writeHead(200, links === undefined ? {} : { 'content-type': 'text/html' }).end(found);
    });
  }

  static async start(): Promise<PythonIndex> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new PythonIndex(server);
  }

  get authority(): string {
    return `${HOST}:${(this.#server.address() as AddressInfo).port}`;
  }

  get preset(): Preset {
    const variables = { PIP_INDEX_URL: `http://${this.authority}/simple/`, PIP_TRUSTED_HOST: HOST };
    return { hosts: [this.authority], variables };
  }

  wheel({ name, version = '1.0.0', files, requires = [] }: Wheel): void {
    const info = `${name}-${version}.dist-info`;
    const needs = requires.map((one) => `Requires-Dist: ${one}\n`).join('');
    const all = {
      ...files,
      [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n${needs}`,
      [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    };
    const record = [...Object.keys(all), `${info}/RECORD`].map((path) => `${path},,\n`).join('');
    const input = JSON.stringify({ ...all, [`${info}/RECORD`]: record });
    this.#offer(name, `${name}-${version}-py3-none-any.whl`, execFileSync('python3', ['-c', ZIP], { input }));
  }

  /** Has to be built, which runs this code. */
  source(name: string, setup: string): void {
    const members = [
      { path: `${name}-1.0.0/setup.py`, content: setup },
      { path: `${name}-1.0.0/PKG-INFO`, content: `Metadata-Version: 2.1\nName: ${name}\nVersion: 1.0.0\n` },
    ];
    this.#offer(name, `${name}-1.0.0.tar.gz`, gzipSync(rawTar(members)));
  }

  #offer(name: string, file: string, content: Buffer): void {
    const path = `/files/${file}`;
    this.#files.set(path, content);
    const sum = createHash('sha256').update(content).digest('hex');
    const links = this.#links.get(name) ?? [];
    this.#links.set(name, [...links, `<a href="${path}#sha256=${sum}">${file}</a>`]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
