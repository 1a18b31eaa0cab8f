import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** What a client may take to send the rest of its request, or to fetch an answer, once the server stops. */
const GRACE_MS = 5000;

/**
 * The connections of a server, and on which of them a request is under way. Node closes those that are idle after a
 * request, but not those on which nothing or half a request has come, and from its close on it does not time them out.
 */
export class OpenConnections {
  readonly #server: Server;
  readonly #waiting = new Set<Socket>();
  #closing = false;

  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket: Socket) => {
      this.#wait(socket);
      socket.once('close', () => this.#waiting.delete(socket));
    });
    server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      this.#waiting.delete(socket);
      response.once('close', () => {
        if (!socket.destroyed) this.#wait(socket);
      });
    });
    // Whoever takes the connection over ends it, too.
    server.on('upgrade', ({ socket }: IncomingMessage) => this.#waiting.delete(socket));
  }

  #wait(socket: Socket): void {
    if (this.#closing) socket.destroy();
    else this.#waiting.add(socket);
  }

  /** Ends those on which nothing is under way; the others have a little time. */
  close(): void {
    this.#closing = true;
    for (const socket of this.#waiting) socket.destroy();
    setTimeout(() => this.#server.closeAllConnections(), GRACE_MS).unref();
  }
}
