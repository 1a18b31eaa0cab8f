import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { HotcellError } from '../core/errors.ts';
import type { Caller } from '../sessions/api.ts';
import { KEY_PROTOCOL_PREFIX } from '../wire/terminal.ts';
import { isSameOrigin, isServedHost, toOrigins } from './addresses.ts';
import type { HttpDependencies, HttpOptions } from './dependencies.ts';

const CHARACTERS_SHOWN = 200;
const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;
/** Pages that a person may open by a link from anywhere; they run nothing by themselves. */
const LINKABLE = new Set(['/', '/docs']);
/** Routes that only read; a method they do not have leads to no route, and so asks for the key. */
export const OPEN_WITHOUT_KEY = new Set(['/', '/docs', '/openapi.json', '/health', '/livez', '/readyz']);
/** Posts that say everything by their address. A page of another site cannot send them: its Origin is refused. */
const WITHOUT_BODY = new Set([
  '/v1/sessions/:id/keep-alive',
  '/v1/sessions/:id/pause',
  '/v1/sessions/:id/resume',
  '/v1/sessions/:id/kill',
  '/v1/sessions/:id/execs/:exec_id/kill',
]);

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
      throw new HotcellError('HOST_REFUSED', `${quoted(host)} is no name of this server`);
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

/** Whose request it is: asked once by the key, known to the routes afterwards. */
export class Callers {
  readonly #tenants: HttpDependencies['tenants'];
  readonly #known = new WeakMap<IncomingMessage, Caller>();

  constructor(tenants: HttpDependencies['tenants']) {
    this.#tenants = tenants;
  }

  admit(request: FastifyRequest): void {
    if (OPEN_WITHOUT_KEY.has(request.routeOptions.url ?? '')) return;
    this.#known.set(request.raw, { tenant: this.#tenants.authenticate(givenKey(request)) });
  }

  /** Precondition: the request was admitted. */
  of({ raw }: FastifyRequest): Caller {
    const caller = this.#known.get(raw);
    if (caller === undefined) throw new RangeError('nobody asked who sends this request');
    return caller;
  }
}

/** As Node gives headers: one character per byte. */
function givenKey({ headers }: FastifyRequest): string | undefined {
  const given = /^Bearer +(.*)$/i.exec(headers.authorization ?? '')?.[1];
  if (given !== undefined) return given;
  if (headers.upgrade?.toLowerCase() !== 'websocket') return undefined;
  const protocols = (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  const protocol = protocols.find((name) => name.startsWith(KEY_PROTOCOL_PREFIX));
  return protocol === undefined
    ? undefined
    : Buffer.from(protocol.slice(KEY_PROTOCOL_PREFIX.length), 'base64url').toString('latin1');
}

/** SECURITY: a browser sends other types across sites without asking first, so they must never reach a run. */
export function requireJsonType(request: FastifyRequest): void {
  const { headers } = request;
  const type = headers['content-type'];
  if (type === undefined && mayComeEmpty(request) && isAnnouncedEmpty(request)) return;
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

/** Whether the route asks for no body; clients that send an empty one all the same are served. */
export function mayComeEmpty({ method, routeOptions }: FastifyRequest): boolean {
  return method === 'DELETE' || WITHOUT_BODY.has(routeOptions.url ?? '');
}

function isAnnouncedEmpty({ headers }: FastifyRequest): boolean {
  return (headers['content-length'] ?? '0') === '0' && headers['transfer-encoding'] === undefined;
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, CHARACTERS_SHOWN));
}
