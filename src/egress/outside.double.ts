import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTcpServer, type Server as TcpServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { SILENT_LOG } from '../core/log.ts';
import type { Allowed } from './cell-network.ts';
import { EgressGate, type EgressGateOptions, type OpenOptions } from './gate.ts';
import { ProxyFront } from './proxy-front.double.ts';
import type { WayOut } from './way-out.ts';

const NO_PRESETS = { npm: { hosts: [] }, pypi: { hosts: [] }, github: { hosts: [] } };

export interface Opened {
  readonly gate: EgressGate;
  readonly session: WayOut;
  readonly front: ProxyFront;
  /** Names that were resolved. */
  readonly resolved: string[];
}

/** For tests: servers that stand for the outside, and gates that lead there. All names are those of this machine. */
export class Outside {
  /** The server names of TLS connections, and those that are open now. */
  readonly greeted: string[] = [];
  readonly served = new Set<string>();
  /** Plain requests. */
  readonly seen: { readonly request: IncomingMessage; readonly body: string }[] = [];
  readonly #tls: TcpServer;
  readonly #http: TcpServer;
  readonly #https: TcpServer;
  readonly #ends: (() => Promise<void>)[] = [];

  private constructor(certificate: { readonly cert: Buffer; readonly key: Buffer }) {
    this.#tls = createTlsServer({ ...certificate, allowHalfOpen: true }, (socket) => {
      const name = String(socket.servername);
      this.greeted.push(name);
      this.served.add(name);
      socket.on('close', () => this.served.delete(name));
      socket.on('error', () => {});
      socket.pipe(socket);
    });
    const answer: RequestListener = (request, response) => {
      let body = '';
      request.on('data', (piece: Buffer) => (body += piece.toString()));
      request.on('end', () => {
        this.seen.push({ request, body });
        const cookies = ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'];
        response.writeHead(201, 'Made', [...cookies, 'Keep-Alive', 'timeout=99', 'X-Own', 'yes']);
        response.end(`answer to ${request.method} ${request.url}`);
      });
    };
    this.#http = createHttpServer(answer);
    this.#https = createHttpsServer(certificate, answer);
  }

  static async start(certificate: { readonly cert: Buffer; readonly key: Buffer }): Promise<Outside> {
    const outside = new Outside(certificate);
    await Promise.all([listen(outside.#tls), listen(outside.#http), listen(outside.#https)]);
    return outside;
  }

  get tlsPort(): number {
    return portOf(this.#tls);
  }

  get httpPort(): number {
    return portOf(this.#http);
  }

  get httpsPort(): number {
    return portOf(this.#https);
  }

  /** A gate with one session, which is on a port. */
  async open(
    allow: readonly Allowed[],
    options: Partial<EgressGateOptions> = {},
    more: OpenOptions = {},
  ): Promise<Opened> {
    const resolved: string[] = [];
    const gate = new EgressGate({
      presets: NO_PRESETS,
      permit: ['127.0.0.0/8'],
      log: SILENT_LOG,
      ...options,
      lookup: (host) => {
        resolved.push(host);
        return options.lookup?.(host) ?? Promise.resolve(['127.0.0.1']);
      },
    });
    const session = gate.open(allow, more);
    const front = await this.front(session);
    this.#ends.push(() => gate.close());
    return { gate, session, front, resolved };
  }

  async front(session: WayOut): Promise<ProxyFront> {
    const front = await ProxyFront.start(session);
    this.#ends.push(() => front.close());
    return front;
  }

  /** One more server, that does this with every connection. */
  async listen(serve: (socket: Socket) => void): Promise<number> {
    const sockets = new Set<Socket>();
    const server = createTcpServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      serve(socket);
    });
    await listen(server);
    this.#ends.push(async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    });
    return portOf(server);
  }

  /** Ends what a test has opened, and forgets what it did. */
  async endAll(): Promise<void> {
    await Promise.all(this.#ends.splice(0).map((end) => end()));
    this.greeted.length = 0;
    this.seen.length = 0;
  }

  close(): void {
    this.#tls.close();
    this.#http.close();
    this.#https.close();
  }
}

async function listen(server: TcpServer): Promise<void> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
}

function portOf(server: TcpServer): number {
  const address = server.address();
  return address === null || typeof address === 'string' ? 0 : address.port;
}

export async function until(condition: () => boolean): Promise<void> {
  for (let rounds = 0; !condition(); rounds++) {
    if (rounds > 1000) throw new Error('it never came to that');
    await sleep(5);
  }
}

export const codes = (session: WayOut): string[] => session.describe().refusals.map(({ code }) => code);
