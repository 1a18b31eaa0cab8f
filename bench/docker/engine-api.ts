import { Agent, request, type IncomingMessage } from 'node:http';

const DEFAULT_SOCKET = '/var/run/docker.sock';
const STDOUT = 1;

/** The few calls of the Docker Engine API that we need, over its unix socket. */
export class EngineApi {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #socket: string;

  constructor(socket: string) {
    this.#socket = socket;
  }

  /** The engine that `docker` would talk to, if it is one on this machine. */
  static fromEnvironment(): EngineApi | undefined {
    const host = process.env['DOCKER_HOST'] ?? `unix://${DEFAULT_SOCKET}`;
    return host.startsWith('unix://') ? new EngineApi(host.slice('unix://'.length)) : undefined;
  }

  /** Undefined when nobody answers. */
  async version(): Promise<string | undefined> {
    try {
      return (await this.call<{ Version: string }>('GET', '/version')).Version;
    } catch {
      return undefined;
    }
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
      if (!state.Running) return { stdout: stdoutOf(bytes), code: state.ExitCode };
    }
  }

  async call<Reply>(method: string, path: string, body?: object): Promise<Reply> {
    const bytes = await this.#bytes(method, path, body === undefined ? undefined : JSON.stringify(body));
    return (bytes.length === 0 ? undefined : JSON.parse(bytes.toString())) as Reply;
  }

  /** Makes an image with one layer from a tar archive. */
  async importImage(name: string, archive: Buffer): Promise<void> {
    await this.#bytes('POST', `/images/create?fromSrc=-&repo=${name}&tag=latest`, archive);
  }

  async #bytes(method: string, path: string, body?: string | Buffer): Promise<Buffer> {
    const response = await this.#send(method, path, body);
    const parts: Buffer[] = [];
    for await (const part of response as AsyncIterable<Buffer>) parts.push(part);
    const bytes = Buffer.concat(parts);
    if ((response.statusCode ?? 500) >= 400)
      throw new Error(`docker: ${method} ${path}: ${bytes.toString().trim()}`);
    return bytes;
  }

  #send(method: string, path: string, body: string | Buffer | undefined): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const kind = typeof body === 'string' ? 'application/json' : 'application/x-tar';
      const headers =
        body === undefined ? {} : { 'content-type': kind, 'content-length': Buffer.byteLength(body) };
      const options = { socketPath: this.#socket, agent: this.#agent, method, path, headers };
      const sent = request(options, resolve);
      sent.on('error', (cause) =>
        reject(new Error(`docker: ${method} ${path}: ${cause.message}`, { cause })),
      );
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Both streams come in frames: one byte that names the stream, three zeros, four bytes of length. */
function stdoutOf(frames: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at + 8 <= frames.length;) {
    const length = frames.readUInt32BE(at + 4);
    if (frames[at] === STDOUT) parts.push(frames.subarray(at + 8, at + 8 + length));
    at += 8 + length;
  }
  return Buffer.concat(parts).toString();
}
