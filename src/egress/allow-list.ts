import { EGRESS_PRESETS } from '../core/host-pattern.ts';
import type { Allowed, HttpRule } from './cell-network.ts';
import type { Destination, Refused } from './host-name.ts';
import { matchesHost, parsePattern, type HostPattern } from './host-pattern.ts';
import { describeAllowed } from './http-rule.ts';
import { matchesPath, parsePathPattern } from './path-pattern.ts';
import type { PresetTable } from './presets.ts';
import type { SeenRequest } from './seen-request.ts';

/** Somewhere to go, and as far as it can be seen, for what. */
export interface Wanted {
  readonly to: Destination;
  /** The one of the protocol, for patterns that name none. */
  readonly usualPort: number;
  /** Undefined for a tunnel: nobody sees what is asked for in it. */
  readonly request: SeenRequest | undefined;
}

/** What may be asked of a host; undefined stands for everything. */
interface Part {
  readonly path: string | undefined;
  readonly methods: readonly string[] | undefined;
}

interface Entry extends HostPattern {
  /** Undefined: the host as a whole. */
  readonly part: Part | undefined;
}

const ALL_PATHS = '/*';

/** What one way out may reach. SECURITY: an empty list allows nothing. */
export class AllowList {
  /** What the presets in it stand for. */
  readonly hosts: readonly string[];
  /** Everything that can be reached, with the presets spelled out. */
  readonly reachable: readonly string[];
  readonly #entries: readonly Entry[];
  /** Why presets that were asked for have no hosts. */
  readonly #problems: readonly string[];

  constructor(allow: readonly Allowed[], presets: PresetTable) {
    const asked = EGRESS_PRESETS.filter((name) => allow.includes(name));
    this.hosts = [...new Set(asked.flatMap((name) => presets[name].hosts))];
    this.#problems = asked.flatMap((name) => presets[name].problem ?? []);
    const own = allow.filter((entry) => !EGRESS_PRESETS.some((name) => name === entry));
    this.reachable = [...new Set([...own.map(describeAllowed), ...this.hosts])];
    // What is no pattern matches nothing; whoever takes requests refuses it with a message.
    this.#entries = [...own, ...this.hosts].flatMap((entry) => parseEntry(entry) ?? []);
  }

  /** Why not, or undefined. */
  check({ to: { host, port }, usualPort, request }: Wanted): Refused | undefined {
    const matching = this.#entries.filter((entry) => matchesHost(entry, host));
    if (matching.length === 0) {
      const reason = ['not on the allow-list of this session', ...this.#problems].join('; ');
      return { code: 'not_allowed', reason };
    }
    const onPort = matching.filter((entry) => port === (entry.port ?? usualPort));
    if (onPort.length === 0) {
      const ports = [...new Set(matching.map((entry) => entry.port ?? usualPort))].join(', ');
      return { code: 'port', reason: `of this host only port ${ports} is allowed in this way` };
    }
    if (onPort.some(({ part }) => part === undefined || covers(part, request))) return undefined;
    return { code: 'not_allowed', reason: whyNoPart(request) };
  }
}

function parseEntry(allowed: Allowed): Entry | undefined {
  const rule: HttpRule = typeof allowed === 'string' ? { host: allowed } : allowed;
  const host = parsePattern(rule.host);
  const path = rule.pathPattern === undefined ? ALL_PATHS : parsePathPattern(rule.pathPattern);
  if (host === undefined || path === undefined) return undefined;
  const { methods } = rule;
  const isWhole = path === ALL_PATHS && methods === undefined;
  return { ...host, part: isWhole ? undefined : { path: path === ALL_PATHS ? undefined : path, methods } };
}

/** SECURITY: what cannot be seen, or may be something else than it looks like, is no part of anything. */
function covers({ path, methods }: Part, request: SeenRequest | undefined): boolean {
  if (request === undefined || request.steeredBy !== undefined) return false;
  if (methods !== undefined && !methods.includes(request.method)) return false;
  return path === undefined || (request.isClear && matchesPath(path, request.path));
}

function whyNoPart(request: SeenRequest | undefined): string {
  if (request === undefined) {
    return 'only parts of this host are allowed; use fetch, or have the whole host allowed';
  }
  const { steeredBy, isClear } = request;
  if (steeredBy !== undefined) {
    return `only parts of this host are allowed, and ${steeredBy} may make another request of this one`;
  }
  if (!isClear) {
    return 'only parts of this host are allowed, and this path can be read in more than one way';
  }
  return 'only other paths or methods of this host are allowed';
}
