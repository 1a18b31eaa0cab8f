import type { EgressRefusal } from '../core/egress-refusal.ts';

/** Where a program wants to go, in the one form that everything after this compares. */
export interface Destination {
  readonly host: string;
  readonly port: number;
}

/** Why something is refused, before it is known on which way out. */
export interface Refused {
  readonly code: EgressRefusal['code'];
  readonly reason: string;
  /** Those of it that are refused. */
  readonly addresses?: readonly string[];
}

/** With `asked` as the program wrote it, but for passwords: only for people. */
export type Parsed =
  { readonly to: Destination } | { readonly refused: Refused; readonly asked: Destination };

export const HTTP_PORT = 80;
export const TLS_PORT = 443;

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const LONGEST_NAME = 253;

/**
 * A name in lower case and without the dot at its end, or undefined if it is none.
 * SECURITY: letters, digits, hyphens, underscores and dots only. What is compared, resolved and logged is then the same
 * text for everybody: no NUL at which a resolver would stop, no second spelling.
 */
export function canonicalHost(text: string): string | undefined {
  const name = (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase();
  if (name.length === 0 || name.length > LONGEST_NAME) return undefined;
  const labels = name.split('.');
  if (!labels.every((label) => LABEL.test(label)) || endsInNumber(labels)) return undefined;
  return name;
}

/** A resolver takes what ends in a number, also as `0x7f.1`, `017700000001` or `2130706433`, for an IPv4 address. */
function endsInNumber(labels: readonly string[]): boolean {
  return /^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '');
}

function isAddress(text: string): boolean {
  const name = (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase();
  return text.startsWith('[') || name.includes(':') || endsInNumber(name.split('.'));
}

/** `host` or `host:port`, as in the target of CONNECT, in an absolute URI, and in the Host header. */
export function parseAuthority(text: string, usualPort: number): Parsed {
  const [, name = text, digits = ''] = /^(.*?)(?::(\d{0,5}))?$/s.exec(text) ?? [];
  const port = digits === '' ? usualPort : Number(digits);
  const refuse = (code: Refused['code'], reason: string): Parsed => ({
    refused: { code, reason },
    // SECURITY: it ends up in logs, so without the name and password that may stand before the host.
    asked: { host: name.slice(name.lastIndexOf('@') + 1), port },
  });
  if (isAddress(name)) return refuse('ip_literal', 'it is an address, and only names can be allowed');
  const host = canonicalHost(name);
  if (host === undefined) return refuse('malformed', 'not a host name');
  if (port < 1 || port > 65_535) return refuse('malformed', 'not a port');
  return { to: { host, port } };
}

export function toText({ host, port }: Destination): string {
  return `${host}:${port}`;
}
