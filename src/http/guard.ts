import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { HotcellError } from '../core/errors.ts';
import { isSameOrigin, isServedHost, toOrigins } from './addresses.ts';
import type { HttpOptions } from './dependencies.ts';

const CHARACTERS_SHOWN = 200;
const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;
/** Pages that a person may open by a link from anywhere; they run nothing by themselves. */
const LINKABLE = new Set(['/', '/docs']);
/** Routes that only read; a method they do not have leads to no route, and so asks for the key. */
const OPEN_WITHOUT_KEY = new Set(['/', '/docs', '/openapi.json', '/health']);

type Check = (request: FastifyRequest) => void;

/**
 * Refuses what web pages of others make a browser send.
 * SECURITY: without it any page that a person visits could run code on this machine.
 */
export function makeAddressCheck(options: HttpOptions): Check {
  const allowedHosts = new Set(options.allowedHosts.map((host) => host.toLowerCase()));
  const corsOrigins = new Set(toOrigins(options.corsOrigins));
  return ({ headers, method, routeOptions }) => {
    const host = headers.host ?? '';
    if (!isServedHost(host, allowedHosts)) {
      throw new HotcellError('HOST_REFUSED', `this server is not called ${quoted(host)}`);
    }
    const { origin } = headers;
    if (origin !== undefined) {
      if (corsOrigins.has(origin) || isSameOrigin(origin, host)) return;
      throw new HotcellError('ORIGIN_REFUSED', `pages of ${quoted(origin)} may not call this server`);
    }
    // Some cross-site requests carry no Origin: those of images, scripts, links and plain GET forms.
    if (headers['sec-fetch-site'] !== 'cross-site') return;
    if (method === 'GET' && LINKABLE.has(routeOptions.url ?? '')) return;
    throw new HotcellError('ORIGIN_REFUSED', 'pages of other sites may not call this server');
  };
}

export function makeKeyCheck(apiKey: string | undefined): Check {
  if (apiKey === undefined) return () => undefined;
  const expected = digest(Buffer.from(apiKey));
  return ({ headers, routeOptions }) => {
    if (OPEN_WITHOUT_KEY.has(routeOptions.url ?? '')) return;
    const given = /^Bearer +(.*)$/i.exec(headers.authorization ?? '')?.[1];
    if (given === undefined) throw new HotcellError('UNAUTHORIZED', 'the key is missing');
    // SECURITY: digests have one length, so the comparison tells nothing about the key by its time.
    if (!timingSafeEqual(digest(Buffer.from(given, 'latin1')), expected)) {
      throw new HotcellError('UNAUTHORIZED', 'the key is wrong');
    }
  };
}

/** SECURITY: a browser sends other types across sites without asking first, so they must never reach a run. */
export function requireJsonType({ headers }: FastifyRequest): void {
  const type = headers['content-type'];
  if (type === undefined)
    throw new HotcellError('UNSUPPORTED_MEDIA_TYPE', 'the content-type header is missing');
  if (!JSON_TYPE.test(type)) {
    throw new HotcellError(
      'UNSUPPORTED_MEDIA_TYPE',
      `the content type ${quoted(type)} is not application/json`,
    );
  }
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') {
    throw new HotcellError(
      'UNSUPPORTED_MEDIA_TYPE',
      `the content encoding ${quoted(encoding)} is not supported`,
      {
        hint: 'Send the body without compression.',
      },
    );
  }
}

function digest(bytes: Uint8Array): Buffer {
  return hash('sha256', bytes, 'buffer');
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, CHARACTERS_SHOWN));
}
