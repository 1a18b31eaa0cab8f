import type { Socket } from 'node:net';
import {
  connect,
  createSecureContext,
  getCACertificates,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';

export interface TlsClientParts {
  /** Authorities that are trusted beside those of Node, in PEM. */
  readonly caBundle: Uint8Array | undefined;
  readonly timeoutMs: number;
}

export type Secured = { readonly socket: TLSSocket } | { readonly failed: string };

/** Speaks TLS for programs, where the gate has to see what they ask for. */
export class TlsClient {
  readonly #parts: TlsClientParts;
  #context: SecureContext | undefined;

  constructor(parts: TlsClientParts) {
    this.#parts = parts;
  }

  /** Over a connection that is there; the other end must prove to be `host`. */
  secure(socket: Socket, host: string): Promise<Secured> {
    const secure = connect({
      socket,
      servername: host,
      secureContext: this.#trusted(),
      // SECURITY: said here because a variable of the environment can change what happens without it.
      rejectUnauthorized: true,
      ALPNProtocols: ['http/1.1'],
    });
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle({ failed: 'no TLS in time' }), this.#parts.timeoutMs);
      const settle = (secured: Secured): void => {
        clearTimeout(timer);
        secure.off('secureConnect', connected);
        secure.off('close', closed);
        if ('failed' in secured) {
          secure.destroy();
          socket.destroy();
        }
        resolve(secured);
      };
      const connected = (): void => settle({ socket: secure });
      const closed = (): void => settle({ failed: 'it hung up during the TLS handshake' });
      secure.once('secureConnect', connected);
      secure.once('close', closed);
      // Stays: whoever uses the socket looks at 'close'.
      secure.on('error', (error) => settle({ failed: describeFailure(error) }));
    });
  }

  /** Made once, since reading all authorities takes a while. */
  #trusted(): SecureContext {
    const { caBundle } = this.#parts;
    const own = caBundle === undefined ? [] : [Buffer.from(caBundle)];
    return (this.#context ??= createSecureContext({ ca: [...getCACertificates('default'), ...own] }));
  }
}

function describeFailure(error: Error): string {
  return 'code' in error && typeof error.code === 'string'
    ? `${error.message} (${error.code})`
    : error.message;
}
