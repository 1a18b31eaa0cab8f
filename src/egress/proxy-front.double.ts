import { once } from 'node:events';
import { request, type IncomingHttpHeaders } from 'node:http';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { WayOut } from './way-out.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface Ask {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** For tests: what programs do with a proxy. */
export class ProxyClient {
  readonly port: number;

  constructor(port: number) {
    this.port = port;
  }

  async connect(): Promise<Socket> {
    const socket = connect({ host: '127.0.0.1', port: this.port, allowHalfOpen: true });
    socket.on('error', () => {});
    await once(socket, 'connect');
    return socket;
  }

  /** Asks for a tunnel, with more lines of headers; an empty text is one that was opened. */
  async tunnel(authority: string, headers = ''): Promise<{ socket: Socket; text: string; status: number }> {
    const socket = await this.connect();
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${headers}\r\n`);
    const text = await readUntil(socket, (all) => /^HTTP\/1.1 200.*\r\n\r\n$/s.test(all));
    const status = Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]);
    return { socket, status, text: status === 200 ? '' : text };
  }

  /** A TLS connection through a tunnel that asks for `servername`. */
  async secure(authority: string, options: { servername: string; ca: string | Buffer }): Promise<TLSSocket> {
    const { socket, text } = await this.tunnel(authority);
    if (text !== '') throw new Error(text);
    const secure = connectTls({ socket, ...options });
    await once(secure, 'secureConnect');
    return secure;
  }

  /** All that is answered to these bytes until the connection ends. */
  async raw(bytes: string): Promise<string> {
    const socket = await this.connect();
    socket.write(bytes, 'latin1');
    const text = await readUntil(socket, () => false);
    socket.destroy();
    return text;
  }

  ask(url: string, { method = 'GET', headers = {}, body }: Ask = {}): Promise<Answer> {
    const host = /^http:\/\/([^/?]*)/.exec(url)?.[1] ?? '';
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port: this.port,
          path: url,
          method,
          headers: { host, ...headers },
          agent: false,
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (piece: string) => (text += piece));
          response.on('error', reject);
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
          );
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  }
}

/** For tests: the proxy of a session on a port. */
export class ProxyFront extends ProxyClient {
  readonly #server: Server;
  readonly #sockets: ReadonlySet<Socket>;

  private constructor(server: Server, sockets: ReadonlySet<Socket>) {
    const address = server.address();
    super(address === null || typeof address === 'string' ? 0 : address.port);
    this.#server = server;
    this.#sockets = sockets;
  }

  static async start(session: WayOut): Promise<ProxyFront> {
    const sockets = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      session.accept(socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new ProxyFront(server, sockets);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** What a socket says until it is enough or all. */
async function readUntil(socket: Socket, isEnough: (all: string) => boolean): Promise<string> {
  return new Promise((resolve) => {
    let all = '';
    const take = (piece: Buffer): void => {
      all += piece.toString('latin1');
      if (isEnough(all)) finish();
    };
    const finish = (): void => {
      socket.pause();
      socket.off('data', take);
      socket.off('end', finish);
      socket.off('close', finish);
      resolve(all);
    };
    socket.on('data', take);
    socket.once('end', finish);
    socket.once('close', finish);
    socket.resume();
  });
}
