import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { tmpdirOnTmpfs } from './server.ts';

/** What code would like to reach, open to everybody on this machine, so that only walls keep it out. */
export interface Bait {
  readonly secret: string;
  readonly secretFile: string;
  /** A folder that everybody may write to. */
  readonly outside: string;
  readonly tcpPort: number;
  readonly udpPort: number;
  readonly socketPath: string;
  /** Without the NUL before it. */
  readonly abstractName: string;
  /** Who came to the listeners. */
  readonly visitors: readonly string[];
  /** What was made or changed outside. */
  changes(): string[];
  remove(): Promise<void>;
}

export async function layBait(): Promise<Bait> {
  const folder = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-bait-'));
  chmodSync(folder, 0o755);
  const secret = `secret-${randomUUID()}`;
  const secretFile = join(folder, 'secret.txt');
  writeFileSync(secretFile, secret, { mode: 0o644 });
  const outside = join(folder, 'outside');
  mkdirSync(outside);
  chmodSync(outside, 0o777);
  const visitors: string[] = [];
  const servers: Server[] = [];
  const listen = async (
    name: string,
    target: { port?: number; host?: string; path?: string },
  ): Promise<Server> => {
    const server = createServer((socket) => {
      visitors.push(name);
      socket.on('error', () => {});
      socket.destroy();
    });
    server.listen(target);
    await once(server, 'listening');
    servers.push(server);
    return server;
  };
  const tcp = await listen('tcp', { port: 0, host: '0.0.0.0' });
  const socketPath = join(folder, 'listener.sock');
  await listen('unix', { path: socketPath });
  chmodSync(socketPath, 0o777);
  const abstractName = `hotcell-${randomUUID()}`;
  await listen('abstract', { path: `\0${abstractName}` });
  const udp = createSocket('udp4', () => visitors.push('udp'));
  udp.bind(0, '0.0.0.0');
  await once(udp, 'listening');
  return {
    secret,
    secretFile,
    outside,
    tcpPort: (tcp.address() as AddressInfo).port,
    udpPort: udp.address().port,
    socketPath,
    abstractName,
    visitors,
    changes: () => readdirSync(outside),
    remove: async () => {
      udp.close();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
      rmSync(folder, { recursive: true });
    },
  };
}
