/** What the gate sees of a request that is not in a tunnel. */
export interface SeenRequest {
  readonly scheme: 'http' | 'https';
  readonly method: string;
  /** As it is sent on, without the query. */
  readonly path: string;
  /** Every server takes the path for the same one. */
  readonly isClear: boolean;
  /** A header by which some servers take it for a request with another method or path. */
  readonly steeredBy: string | undefined;
}

/** Rules have no longer ones. */
const LONGEST_PATH = 2048;

/** What a refusal tells of it: as much as a rule that allows exactly this could name. Never the query. */
export function toNameable({ scheme, method, path, isClear, steeredBy }: SeenRequest): {
  readonly scheme: 'http' | 'https';
  readonly method?: string;
  readonly path?: string;
} {
  if (steeredBy !== undefined) return { scheme };
  return isClear && path.length <= LONGEST_PATH ? { scheme, method, path } : { scheme, method };
}
