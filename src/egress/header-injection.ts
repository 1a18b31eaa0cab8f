import { validateHeaderName, validateHeaderValue } from 'node:http';
import { HotcellError } from '../core/errors.ts';
import { HTTP_PORT, TLS_PORT, parseAuthority, toText, type Destination } from './host-name.ts';

/** What is kept from being printed by accident until it is asked for. */
export interface Revealed {
  reveal(): string;
}

/**
 * Headers that the gate adds to what programs ask of one host, so that no program has to know them. A plain request for
 * `http://<host>/…` goes to that host over TLS.
 */
export interface HeaderInjection {
  /** A name, or `name:port` for another port of TLS than 443: programs ask for `http://name:port/…` then. */
  readonly host: string;
  /** They take the place of what the program has sent under these names. */
  readonly headers: Readonly<Record<string, string | Revealed>>;
}

/** Whether a request ends where it is said to end is not for others to decide. */
const OURS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

type Added = ReadonlyMap<string, string>;

/**
 * The headers that one way out adds. SECURITY: their values are in here and in what is sent to their host; a plan of a
 * request, a passage or a refusal has none of them.
 */
export class InjectedHeaders {
  /** By the destination over TLS. */
  readonly #added: ReadonlyMap<string, Added>;

  constructor(injections: readonly HeaderInjection[] = []) {
    const added = new Map<string, Map<string, string>>();
    for (const { host, headers } of injections) {
      const place = toText(requireHost(host));
      const before = added.get(place) ?? new Map<string, string>();
      for (const [name, value] of Object.entries(headers)) before.set(...requireHeader(name, value));
      added.set(place, before);
    }
    this.#added = added;
  }

  /** Where a plain request to this place is sent over TLS; undefined for all places that have nothing to do with us. */
  secured(plain: Destination): Destination | undefined {
    const { host } = plain;
    const to = { host, port: plain.port === HTTP_PORT ? TLS_PORT : plain.port };
    // `http://host:443/` is no usual way to write anything, and no request for https.
    return plain.port !== TLS_PORT && this.#added.has(toText(to)) ? to : undefined;
  }

  /** Does anything belong to this place, reached over TLS? */
  has(to: Destination): boolean {
    return this.#added.has(toText(to));
  }

  /**
   * The headers of a request with those of the host, as names and values in turn. SECURITY: only for a connection whose
   * other end has proved to be that host.
   */
  addTo(headers: readonly string[], to: Destination): string[] {
    const added = this.#added.get(toText(to));
    if (added === undefined) return [...headers];
    const kept = headers.flatMap((name, index) => {
      if (index % 2 === 1) return [];
      // SECURITY: to many servers an underscore is a hyphen, and theirs would stand beside ours.
      return added.has(name.toLowerCase().replaceAll('_', '-')) ? [] : [name, headers[index + 1] ?? ''];
    });
    return [...kept, ...[...added].flat()];
  }
}

function requireHost(text: string): Destination {
  const parsed = parseAuthority(text, TLS_PORT);
  if ('to' in parsed && parsed.to.port !== HTTP_PORT) return parsed.to;
  throw new HotcellError('CONFIG_INVALID', `headers can be added for a host name only, not ${text}`);
}

/** SECURITY: whatever is wrong, the value is not in the message. */
function requireHeader(name: string, value: string | Revealed): [string, string] {
  const lower = name.toLowerCase();
  const text = typeof value === 'string' ? value : value.reveal();
  try {
    validateHeaderName(lower);
    validateHeaderValue(lower, text);
  } catch {
    throw new HotcellError('CONFIG_INVALID', `${JSON.stringify(name)} or its value cannot be a header`);
  }
  if (!OURS.has(lower) && !lower.includes('_') && !lower.startsWith('proxy-')) return [lower, text];
  throw new HotcellError('CONFIG_INVALID', `the header ${lower} is not for others to set`);
}
