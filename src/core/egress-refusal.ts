export const REFUSAL_CODES = [
  'not_allowed',
  'ip_literal',
  'private_address',
  'port',
  'sni_mismatch',
  'unresolvable',
  'malformed',
] as const;

/** A connection of a program that the gate did not let through. */
export interface EgressRefusal {
  /** ISO 8601. */
  readonly at: string;
  /** As the program asked for it. */
  readonly host: string;
  readonly port: number;
  /** Why, for a person. */
  readonly reason: string;
  readonly code: (typeof REFUSAL_CODES)[number];
  /** Of a plain request; absent for a tunnel. */
  readonly scheme?: 'http' | 'https' | undefined;
  /** Of a plain request, where it counts. */
  readonly method?: string | undefined;
  /** Of a plain request, without the query; absent where no rule could name it. */
  readonly path?: string | undefined;
}
