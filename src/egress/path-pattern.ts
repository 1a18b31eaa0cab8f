import { isUtf8 } from 'node:buffer';
import { matchesStars } from '../lib/match-stars.ts';

/** Some servers decode twice; nobody decodes more often than this. */
const MOST_DECODINGS = 4;
/** `.` or `..` between slashes of either kind; some servers also cut a part off at `;`. */
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:[/\\;]|$)/;
// oxlint-disable-next-line no-control-regex -- They are what it looks for.
const CONTROL = /[\0-\x1f\x7f]/;

/** The path in the one form that is compared and sent on, as browsers make it: no dots, no backslashes, ASCII only. */
export function normalPath(path: string): string {
  return new URL(`http://host${path}`).pathname;
}

/**
 * Whether every server takes a path for the same one.
 * SECURITY: `/open/..%2fsecret` begins with `/open/` and has no dots to resolve, until a server decodes it. So no decoding
 * may bring out dots, characters that end a text, or bytes that are another spelling of a letter.
 */
export function isUnambiguous(path: string): boolean {
  let text = path;
  for (let decodings = 0; decodings <= MOST_DECODINGS; decodings++) {
    if (DOT_SEGMENT.test(text) || CONTROL.test(text)) return false;
    const decoded = decode(text);
    if (decoded === undefined || decoded === text) return decoded === text;
    text = decoded;
  }
  return false;
}

/** Undefined when it is not UTF-8. */
function decode(text: string): string | undefined {
  const bytes = Buffer.from(text)
    .toString('latin1')
    .replaceAll(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
  const decoded = Buffer.from(bytes, 'latin1');
  return isUtf8(decoded) ? decoded.toString() : undefined;
}

/** The pattern in the form in which paths are compared; undefined for one that nothing should be compared with. */
export function parsePathPattern(pattern: string): string | undefined {
  const isPath = pattern.startsWith('/') && !/[?#\\]/.test(pattern) && isUnambiguous(pattern);
  return isPath ? normalPath(pattern) : undefined;
}

/** Whether an unambiguous path matches, also for servers to which several slashes are one. */
export function matchesPath(pattern: string, path: string): boolean {
  return matchesStars(pattern, path) && matchesStars(mergeSlashes(pattern), mergeSlashes(path));
}

function mergeSlashes(path: string): string {
  return path.replaceAll(/\/{2,}/g, '/');
}
