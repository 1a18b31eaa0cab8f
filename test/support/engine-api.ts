import { Agent, request, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';

const STDOUT = 1;
const STDERR = 2;
const VERSION_WITHIN_MS = 5000;

type Body = string | Readable;

/** The few calls of the Docker Engine API that tests and measurements need, over its unix socket. */
export class EngineApi {
  readonly #agent = new Agent({ keepAlive: true });
  readonly socket: string;

  constructor(socket: string) {
    this.socket = socket;
  }

  /** The engine that `docker` would talk to, if it is one behind a socket of this machine. */
  static fromEnvironment(): EngineApi | undefined {
    try {
      const { socketPath } = findEndpoint({
        ...process.env,
        host: undefined,
        uid: process.getuid?.(),
      }).connection;
      return socketPath === undefined ? undefined : new EngineApi(socketPath);
    } catch {
      // A context that is broken, for instance: not our business here.
      return undefined;
    }
  }

  /** Undefined when nobody answers. */
  async version(): Promise<string | undefined> {
    const answer = this.call<{ Version: string }>('GET', '/version').then(
      ({ Version }) => Version,
      () => undefined,
    );
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), VERSION_WITHIN_MS);
    });
    return Promise.race([answer, silence]).finally(() => clearTimeout(timer));
  }

  async exec(container: string, argv: readonly string[]): Promise<{ stdout: string; code: number | null }> {
    const { Id: id } = await this.call<{ Id: string }>('POST', `/containers/${container}/exec`, {
      Cmd: argv,
      AttachStdout: true,
      AttachStderr: true,
    });
    const bytes = await this.#bytes(
      'POST',
      `/exec/${id}/start`,
      JSON.stringify({ Detach: false, Tty: false }),
    );
    for (;;) {
      const state = await this.call<{ Running: boolean; ExitCode: number | null }>('GET', `/exec/${id}/json`);
      if (!state.Running) return { stdout: textOf(bytes, STDOUT), code: state.ExitCode };
    }
  }

  /** What `docker logs` shows. */
  async logs(container: string): Promise<{ stdout: string; stderr: string }> {
    const bytes = await this.#bytes('GET', `/containers/${container}/logs?stdout=1&stderr=1`);
    return { stdout: textOf(bytes, STDOUT), stderr: textOf(bytes, STDERR) };
  }

  async call<Reply>(method: string, path: string, body?: object): Promise<Reply> {
    const bytes = await this.#bytes(method, path, body === undefined ? undefined : JSON.stringify(body));
    return (bytes.length === 0 ? undefined : JSON.parse(bytes.toString())) as Reply;
  }

  /** Makes an image with one layer from a tar archive; `changes` are instructions of a Dockerfile. */
  async importImage(name: string, archive: Readable, changes: readonly string[] = []): Promise<void> {
    const query = new URLSearchParams({ fromSrc: '-', repo: name, tag: 'latest' });
    for (const change of changes) query.append('changes', change);
    const words = (await this.#bytes('POST', `/images/create?${query.toString()}`, archive)).toString();
    // By then the engine has answered with 200 already.
    if (words.includes('"error"')) throw new Error(`docker: cannot import ${name}: ${words.trim()}`);
  }

  async #bytes(method: string, path: string, body?: Body): Promise<Buffer> {
    const response = await this.#send(method, path, body);
    const parts: Buffer[] = [];
    for await (const part of response as AsyncIterable<Buffer>) parts.push(part);
    const bytes = Buffer.concat(parts);
    if ((response.statusCode ?? 500) >= 400)
      throw new Error(`docker: ${method} ${path}: ${bytes.toString().trim()}`);
    return bytes;
  }

  #send(method: string, path: string, body: Body | undefined): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : headersOf(body);
      const options = { socketPath: this.socket, agent: this.#agent, method, path, headers };
      const sent = request(options, resolve);
      sent.on('error', (cause) =>
        reject(new Error(`docker: ${method} ${path}: ${cause.message}`, { cause })),
      );
      if (!(body instanceof Readable)) {
        sent.end(body);
        return;
      }
      body.on('error', (error) => sent.destroy(error));
      body.pipe(sent);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Of an archive nobody knows the length beforehand. */
function headersOf(body: Body): Record<string, string | number> {
  return typeof body === 'string'
    ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    : { 'content-type': 'application/x-tar', 'transfer-encoding': 'chunked' };
}

/** Both streams come in frames: one byte that names the stream, three zeros, four bytes of length. */
function textOf(frames: Buffer, stream: number): string {
  const parts: Buffer[] = [];
  for (let at = 0; at + 8 <= frames.length;) {
    const length = frames.readUInt32BE(at + 4);
    if (frames[at] === stream) parts.push(frames.subarray(at + 8, at + 8 + length));
    at += 8 + length;
  }
  return Buffer.concat(parts).toString();
}
