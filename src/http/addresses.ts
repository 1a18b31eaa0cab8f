import { isIPv4, isIPv6 } from 'node:net';

const HOST_HEADER = /^(\[[0-9a-f:.]+\]|[^:[\]/@?#\s]+)(?::\d{1,5})?$/;

/**
 * Whether a Host header names this server in a way that no foreign page can bring about.
 * An IP address is safe: a page that rebinds its name to our address still sends its name here.
 */
export function isServedHost(host: string, allowedHosts: ReadonlySet<string>): boolean {
  const lower = host.toLowerCase();
  const name = HOST_HEADER.exec(lower)?.[1];
  if (name === undefined) return false;
  if (name === 'localhost' || isIPv4(name)) return true;
  if (name.startsWith('[') && isIPv6(name.slice(1, -1))) return true;
  return allowedHosts.has(name) || allowedHosts.has(lower);
}

/** Whether an Origin header is that of a page which this server itself delivered. */
export function isSameOrigin(origin: string, host: string): boolean {
  const page = URL.parse(origin);
  if (page === null || page.origin !== origin) return false;
  if (page.protocol !== 'http:' && page.protocol !== 'https:') return false;
  // The scheme of the page is taken for ours too, because a proxy in front may speak TLS; it fixes the default port.
  return URL.parse(`${page.protocol}//${host}`)?.host === page.host;
}

/** Origins as browsers write them: lower case, no path, no default port. */
export function toOrigins(urls: readonly string[]): string[] {
  return urls.map((url) => new URL(url).origin);
}
