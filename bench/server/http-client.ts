import { Agent, request, type IncomingMessage } from 'node:http';

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** HTTP over connections that are kept, with less of its own than fetch has. */
export class HttpClient {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  get(path: string): Promise<HttpAnswer> {
    return this.send('GET', path);
  }

  post(path: string, body: string): Promise<HttpAnswer> {
    return this.send('POST', path, body);
  }

  /** An answer that is read piece by piece. */
  open(path: string, headers: Readonly<Record<string, string>>): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      request(this.#url + path, { headers: { ...headers }, agent: false }, resolve)
        .on('error', reject)
        .end();
    });
  }

  send(method: string, path: string, body?: string): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const headers =
        body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const sent = request(this.#url + path, { method, headers, agent: this.#agent }, (response) => {
        const parts: Buffer[] = [];
        response.on('data', (chunk: Buffer) => parts.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }),
        );
      });
      sent.on('error', (cause) =>
        reject(new Error(`${method} ${this.#url}${path}: ${cause.message}`, { cause })),
      );
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
