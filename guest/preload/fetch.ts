// fetch through the gate: every hop is a request that the gate can read, so that paths and methods count.
import { gate, refuse, requireFile, requireHttp } from './guard.ts';

const native = Bun.fetch;
const MOST_HOPS = 20;
/** Not handed on to another host. */
const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization', 'www-authenticate'];
const SCHEME = 'hotcell-scheme';

export async function gatedFetch(input, init = {}) {
  const isRequest = input instanceof Request;
  const url = new URL(isRequest ? input.url : String(input));
  if (init.unix !== undefined)
    refuse(`fetch over the socket ${String(init.unix)}`, 'no permission allows sockets');
  if (url.protocol === 'file:') {
    requireFile(url, 'read');
    return native(url, init);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return native(input, init);
  const request = isRequest ? input : undefined;
  const method = String(init.method ?? request?.method ?? 'GET').toUpperCase();
  const headers = new Headers(init.headers ?? request?.headers);
  const body = 'body' in init ? init.body : request?.body;
  const mode = init.redirect ?? request?.redirect ?? 'follow';
  const signal = init.signal ?? request?.signal;
  return hop({ url, method, headers, body, signal, mode, init, hops: 0 });
}

async function hop(asked) {
  const { url, method, headers, body, signal, mode, init } = asked;
  requireHttp(url, method);
  if (gate === undefined) refuse(`${method} ${url.href}`, 'there is no way to the network in this workbench');
  headers.delete(SCHEME);
  if (url.protocol === 'https:') headers.set(SCHEME, 'https');
  const plain = new URL(url.href);
  // The port of https is the gate's to know; another one has to be said.
  plain.protocol = 'http:';
  const response = await native(plain, {
    ...init,
    method,
    headers,
    signal,
    ...(body === undefined || body === null ? {} : { body, duplex: 'half' }),
    redirect: 'manual',
    proxy: gate,
    tls: undefined,
  });
  const next = nextOf(response, url);
  if (next === undefined || mode === 'manual') return named(response, url, asked.hops > 0);
  if (mode === 'error') throw new TypeError(`fetch of ${url.href} was redirected, and must not be`);
  if (asked.hops >= MOST_HOPS) throw new TypeError(`fetch of ${url.href} was redirected too often`);
  await response.body?.cancel();
  return hop({ ...asked, ...follow(asked, response.status, next), url: next, hops: asked.hops + 1 });
}

function nextOf(response, url) {
  const location = response.headers.get('location');
  if (location === null || ![301, 302, 303, 307, 308].includes(response.status)) return undefined;
  const next = new URL(location, url);
  if (next.hash === '') next.hash = url.hash;
  if (next.protocol !== 'http:' && next.protocol !== 'https:')
    throw new TypeError(`fetch of ${url.href} was redirected to ${next.protocol}`);
  return next;
}

/** What becomes of a request at a redirect, as the standard of fetch has it. */
function follow({ url, method, headers, body }, status, next) {
  const kept = new Headers(headers);
  if (next.origin !== url.origin) for (const name of CREDENTIALS) kept.delete(name);
  const becomesGet =
    (status === 303 && method !== 'GET' && method !== 'HEAD') ||
    ((status === 301 || status === 302) && method === 'POST');
  if (becomesGet) {
    for (const name of ['content-type', 'content-length', 'content-encoding', 'content-language'])
      kept.delete(name);
    return { method: 'GET', headers: kept, body: undefined };
  }
  if (body instanceof ReadableStream)
    throw new TypeError(`fetch of ${url.href} was redirected, and its body cannot be sent twice`);
  return { headers: kept };
}

/** The address that the code asked for, not the one the gate was asked for. */
function named(response, url, redirected) {
  const shown = new URL(url.href);
  shown.hash = '';
  Object.defineProperty(response, 'url', { value: shown.href, configurable: true });
  Object.defineProperty(response, 'redirected', { value: redirected, configurable: true });
  return response;
}
