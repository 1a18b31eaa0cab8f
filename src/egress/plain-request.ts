import type { IncomingMessage } from 'node:http';
import type { Wanted } from './allow-list.ts';
import { HTTP_PORT, TLS_PORT, parseAuthority, type Destination, type Refused } from './host-name.ts';
import type { InjectedHeaders } from './header-injection.ts';
import { isUnambiguous, normalPath } from './path-pattern.ts';
import type { SeenRequest } from './seen-request.ts';

/** A request of a program, as it is sent on. */
export interface PlainRequest extends Wanted {
  readonly request: SeenRequest;
  /** The path with the query. */
  readonly target: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

/** Asks us to speak TLS with the host. A program that speaks it itself would show us the name of the host only. */
const SCHEME_HEADER = 'hotcell-scheme';

/** Headers that concern one connection and not the next one. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** SECURITY: without these the next one would see other requests than we have seen, whatever `Connection` lists. */
const KEPT: ReadonlySet<string> = new Set(['content-length', 'host']);

/** Headers that some servers take for the real method or path. */
const STEERING: readonly string[] = [
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
];

type Asked = Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>;
type Planned =
  { readonly plan: PlainRequest } | { readonly refused: Refused; readonly asked: Destination | undefined };

/**
 * What is to be sent on, or why nothing is. Node's parser has already refused bad line endings, a length beside an
 * encoding, two lengths, methods that there are none of, and addresses with other characters than ASCII.
 */
export function planRequest(
  { method = '', url = '', rawHeaders }: Asked,
  injected?: InjectedHeaders,
): Planned {
  const [, authority, path = '', query = ''] = /^http:\/\/([^/?]*)(\/[^?]*)?(\?.*)?$/i.exec(url) ?? [];
  if (authority === undefined) {
    return malformed('not a request to a proxy (http://host/path, or CONNECT for https)', undefined);
  }
  const schemes = valuesOf(rawHeaders, SCHEME_HEADER);
  const askedPort = schemes.length === 0 ? HTTP_PORT : TLS_PORT;
  const parsed = parseAuthority(authority, askedPort);
  if ('refused' in parsed) return parsed;
  const problem = findProblem({ to: parsed.to, usualPort: askedPort, url, schemes, rawHeaders });
  if (problem !== undefined) return malformed(problem, parsed.to);
  const secured = schemes.length === 0 ? injected?.secured(parsed.to) : undefined;
  // SECURITY: from here on only the place that it really goes to.
  const to = secured ?? parsed.to;
  const scheme = schemes.length === 0 && secured === undefined ? 'http' : 'https';
  const usualPort = scheme === 'http' ? HTTP_PORT : TLS_PORT;
  const normal = normalPath(path);
  const steeredBy = STEERING.find((name) => namesOf(rawHeaders).includes(name));
  const request = { scheme, method, path: normal, isClear: isUnambiguous(normal), steeredBy } as const;
  // SECURITY: what is sent is put together from what is compared.
  const target = `${normal}${query}`;
  return { plan: { to, usualPort, request, target, headers: toHeaders(to, usualPort, rawHeaders) } };
}

interface Parts {
  readonly to: Destination;
  readonly usualPort: number;
  readonly url: string;
  readonly schemes: readonly string[];
  readonly rawHeaders: readonly string[];
}

function findProblem({ to, usualPort, url, schemes, rawHeaders }: Parts): string | undefined {
  if (schemes.length > 1 || (schemes[0] ?? 'https') !== 'https') {
    return `the header ${SCHEME_HEADER} can only be https, once`;
  }
  if (url.includes('#')) return 'a fragment is not for servers';
  const hosts = valuesOf(rawHeaders, 'host');
  // SECURITY: the server goes by the header, so it must say what is checked here.
  if (hosts.length !== 1 || !isSame(to, hosts[0] ?? '', usualPort)) {
    return 'the Host header is not the host of the address';
  }
  const encodings = valuesOf(rawHeaders, 'transfer-encoding');
  const isKnown = encodings.length <= 1 && (encodings[0] ?? 'chunked').toLowerCase() === 'chunked';
  return isKnown ? undefined : 'an unknown transfer encoding';
}

function toHeaders(to: Destination, usualPort: number, rawHeaders: readonly string[]): string[] {
  return [
    'Host',
    to.port === usualPort ? to.host : `${to.host}:${to.port}`,
    ...endToEnd(rawHeaders, ['host', 'expect', SCHEME_HEADER]),
    ...(valuesOf(rawHeaders, 'transfer-encoding').length === 1 ? ['Transfer-Encoding', 'chunked'] : []),
    'Connection',
    'close',
  ];
}

/** The headers that are handed on, as names and values in turn. */
export function endToEnd(rawHeaders: readonly string[], alsoWithout: readonly string[] = []): string[] {
  const named = valuesOf(rawHeaders, 'connection').flatMap((value) =>
    value.split(',').map((name) => name.trim().toLowerCase()),
  );
  const dropped = new Set([...named.filter((name) => !KEPT.has(name)), ...alsoWithout]);
  return pairsOf(rawHeaders)
    .filter(([name]) => !HOP_BY_HOP.has(name.toLowerCase()) && !dropped.has(name.toLowerCase()))
    .flat();
}

function valuesOf(rawHeaders: readonly string[], wanted: string): string[] {
  return pairsOf(rawHeaders)
    .filter(([name]) => name.toLowerCase() === wanted)
    .map(([, value]) => value);
}

/** With hyphens, since to many servers underscores are the same. */
function namesOf(rawHeaders: readonly string[]): string[] {
  return pairsOf(rawHeaders).map(([name]) => name.toLowerCase().replaceAll('_', '-'));
}

function pairsOf(rawHeaders: readonly string[]): [string, string][] {
  const names = rawHeaders.filter((_, index) => index % 2 === 0);
  return names.map((name, index) => [name, rawHeaders[index * 2 + 1] ?? '']);
}

function isSame(to: Destination, header: string, usualPort: number): boolean {
  const parsed = parseAuthority(header, usualPort);
  return 'to' in parsed && parsed.to.host === to.host && parsed.to.port === to.port;
}

function malformed(reason: string, asked: Destination | undefined): Planned {
  return { refused: { code: 'malformed', reason }, asked };
}
