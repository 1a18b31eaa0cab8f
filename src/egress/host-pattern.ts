import { canonicalHost } from './host-name.ts';

export interface HostPattern {
  /** The name, or with `below` the one whose subdomains are meant. */
  readonly name: string;
  readonly below: boolean;
  /** Undefined: the usual one. */
  readonly port: number | undefined;
}

export function parsePattern(text: string): HostPattern | undefined {
  const [, star, rest = '', digits] = /^(\*\.)?([^:]*)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const name = canonicalHost(rest);
  const port = digits === undefined ? undefined : Number(digits);
  return name === undefined ? undefined : { name, below: star !== undefined, port };
}

/** SECURITY: below means a dot before the name, or `notexample.org` would pass as `*.example.org`. */
export function matchesHost({ name, below }: HostPattern, host: string): boolean {
  return below ? host.endsWith(`.${name}`) : host === name;
}
