import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';

/** Stands before a server and cuts connections after so many bytes of its answers. */
export class BreakingProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  target = 0;
  connections = 0;
  /** Of the connection with this number, beginning with 1. */
  cutAfter: (connection: number) => number = () => Infinity;

  constructor() {
    this.#server = createServer((client) => this.#relay(client));
  }

  static async start(target: number): Promise<BreakingProxy> {
    const started = new BreakingProxy();
    started.target = target;
    await new Promise<void>((resolve) => started.#server.listen(0, '127.0.0.1', resolve));
    return started;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get open(): number {
    return this.#sockets.size;
  }

  #relay(client: Socket): void {
    this.connections += 1;
    let left = this.cutAfter(this.connections);
    const server = connect(this.target, '127.0.0.1');
    const both = [client, server];
    for (const socket of both) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        for (const other of both) other.destroy();
      });
    }
    client.pipe(server);
    server.on('data', (chunk: Buffer) => {
      const part = chunk.subarray(0, left);
      left -= part.length;
      if (left > 0) {
        client.write(part);
        return;
      }
      // What was sent arrives; a reset would take it back. The server must not go on for somebody who is gone.
      client.end(part);
      server.destroy();
    });
  }

  breakAll(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.breakAll();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
