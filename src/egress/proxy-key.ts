import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

const USER = 'hotcell';
const KEY_BYTES = 24;

/** What a program must know to use a proxy that others of this machine can reach, too. */
export class ProxyKey {
  readonly #token = randomBytes(KEY_BYTES).toString('base64url');

  /** SECURITY: for the environment of programs, never for a log. */
  toProxyUrl(port: number): string {
    return `http://${USER}:${this.#token}@127.0.0.1:${port}`;
  }

  /** SECURITY: takes the same time however much of it is right. */
  opens({ headersDistinct }: Pick<IncomingMessage, 'headersDistinct'>): boolean {
    const [value = '', ...others] = headersDistinct['proxy-authorization'] ?? [];
    const [, encoded = ''] = /^basic +(\S+)$/i.exec(value) ?? [];
    const isSame = timingSafeEqual(digest(Buffer.from(encoded, 'base64')), digest(`${USER}:${this.#token}`));
    return isSame && others.length === 0;
  }
}

function digest(text: string | Uint8Array): Uint8Array {
  return createHash('sha256').update(text).digest();
}
