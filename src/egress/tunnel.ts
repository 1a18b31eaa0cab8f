import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { readClientHello } from './client-hello.ts';
import { canonicalHost, type Refused } from './host-name.ts';
import { nextPiece, pump } from './pump.ts';

const HELLO_MS = 30_000;
/** Nobody needs a connection over which nothing is said for so long. */
const IDLE_MS = 15 * 60_000;
/** A fatal alert of TLS: clients print it. */
export const UNRECOGNIZED_NAME = Buffer.from([21, 3, 1, 0, 2, 2, 112]);

/** What a client said first, and what is wrong with it. */
interface Greeting {
  readonly bytes: Buffer;
  readonly refused: Refused | undefined;
}

/**
 * Reads what a client says first; undefined when it leaves before that. It must be a ClientHello with the name that the
 * client has asked for.
 * SECURITY: or the name would be checked, and another one behind the same address be reached. What is said inside of TLS
 * is not seen here: a server that serves several names to one connection may serve another one.
 */
export async function readGreeting(
  client: Duplex,
  head: Uint8Array,
  host: string,
): Promise<Greeting | undefined> {
  const timer = setTimeout(() => client.destroy(), HELLO_MS);
  try {
    let bytes = Buffer.from(head);
    for (;;) {
      const hello = readClientHello(bytes);
      if (hello.kind === 'hello') return { bytes, refused: compareNames(hello.serverName, host) };
      if (hello.kind === 'not_tls') return { bytes, refused: mismatch(`not TLS: ${hello.why}`) };
      // oxlint-disable-next-line no-await-in-loop -- One piece after the other.
      const piece = await nextPiece(client);
      if (piece === undefined) return undefined;
      bytes = Buffer.concat([bytes, piece]);
    }
  } finally {
    clearTimeout(timer);
  }
}

function compareNames(serverName: string | undefined, host: string): Refused | undefined {
  if (serverName === undefined) return mismatch('the TLS handshake names no server');
  return canonicalHost(serverName) === host ? undefined : mismatch('the TLS handshake names another server');
}

function mismatch(reason: string): Refused {
  return { code: 'sni_mismatch', reason };
}

/** Carries bytes both ways until both ends are done; each may end its own way first. `bytes` is what the client said before. */
export function splice(client: Duplex, server: Socket, bytes: Uint8Array): void {
  if (server.destroyed) {
    client.destroy();
    return;
  }
  server.setTimeout(IDLE_MS, () => server.destroy());
  client.once('close', () => {
    if (!client.readableEnded || !client.writableFinished) server.destroy();
  });
  server.once('close', () => {
    if (!server.readableEnded) client.destroy();
  });
  server.write(bytes);
  void pump(client, server);
  void pump(server, client);
}
