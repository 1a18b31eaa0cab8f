import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { HotcellError } from '../core/errors.ts';
import { proxyVariables } from './cell-side.ts';
import { GatedNetwork } from './cell-network.ts';
import type { ProxyKey } from './proxy-key.ts';
import { MOST_CONNECTIONS } from './relay.ts';
import type { WayOut } from './way-out.ts';

export interface LoopbackParts {
  /** SECURITY: opened with the same key, since everybody on this machine can connect. */
  readonly egress: WayOut;
  readonly key: ProxyKey;
  /** More of them than those of the proxy. */
  readonly variables: Readonly<Record<string, string>>;
}

/** The way out of a cell that shares the loopback of this machine: a port of its own there. */
export class LoopbackNetwork extends GatedNetwork {
  readonly variables: Readonly<Record<string, string>>;
  readonly port: number;
  readonly isReady = true;
  readonly #server: Server;
  readonly #sockets: ReadonlySet<Socket>;

  private constructor({ egress, key, variables }: LoopbackParts, listening: Listening) {
    super(egress);
    this.#server = listening.server;
    this.#sockets = listening.sockets;
    this.port = listening.port;
    this.variables = { ...proxyVariables(key.toProxyUrl(listening.port)), ...variables };
  }

  static async open(parts: LoopbackParts): Promise<LoopbackNetwork> {
    return new LoopbackNetwork(parts, await listen((socket) => parts.egress.accept(socket)));
  }

  untilReady(): Promise<void> {
    return Promise.resolve();
  }

  override close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    super.close();
  }
}

interface Listening {
  readonly server: Server;
  readonly sockets: ReadonlySet<Socket>;
  readonly port: number;
}

async function listen(accept: (socket: Socket) => void): Promise<Listening> {
  const sockets = new Set<Socket>();
  // SECURITY: a buffer of one byte reads on when all was taken, and does not collect little pieces meanwhile.
  const server = createServer({ allowHalfOpen: true, noDelay: true, highWaterMark: 1 }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    accept(socket);
  });
  server.maxConnections = MOST_CONNECTIONS;
  // SECURITY: on the loopback only, and on any port that is free.
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // SECURITY: one that cannot be accepted, for want of descriptors, must not end the server.
  server.on('error', () => {});
  const address = server.address();
  if (address === null || typeof address === 'string') {
    throw new HotcellError('INTERNAL', 'the way out of a cell has no port');
  }
  return { server, sockets, port: address.port };
}
