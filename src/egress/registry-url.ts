import { canonicalHost } from './host-name.ts';

const PROTOCOLS: readonly string[] = ['http:', 'https:'];

/** The pattern of an allow-list for the host of a URL, or of a bare host; undefined for addresses, files and nonsense. */
export function toPattern(text: string): string | undefined {
  if (!text.includes('://')) return canonicalHost(text);
  const url = URL.parse(text);
  const isWeb = PROTOCOLS.includes(url?.protocol ?? '');
  const host = url === null || !isWeb ? undefined : canonicalHost(url.hostname);
  if (url === null || host === undefined) return undefined;
  return url.port === '' ? host : `${host}:${url.port}`;
}

/** SECURITY: cells may know where the registry is, but not by which name and password the operator gets there. */
export function withoutSecrets(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !PROTOCOLS.includes(url.protocol)) return undefined;
  url.username = '';
  url.password = '';
  url.search = '';
  url.hash = '';
  return url.href;
}
