import { matchesStars } from '../../lib/match-stars.ts';

const ANY_DEPTH = '**';

/**
 * Whether a relative path matches: `*` stands for anything within one name, `**` for any number of folders, and a slash
 * at the end for everything below. Dots to resolve match nothing.
 * SECURITY: goes back to the latest `**` only, because patterns with many of them would take forever.
 */
export function matchesPathPattern(pattern: string, path: string): boolean {
  const bare = pattern.replace(/^(?:\.?\/)+/, '');
  const wanted = (bare.endsWith('/') ? `${bare}${ANY_DEPTH}` : bare).split('/');
  const parts = path.split('/');
  let [at, part] = [0, 0];
  let again: { readonly at: number; readonly part: number } | undefined;
  while (part < parts.length) {
    const one = wanted[at];
    if (one === ANY_DEPTH) {
      again = { at, part };
      at++;
    } else if (one !== undefined && matchesStars(one, parts[part] ?? '')) {
      at++;
      part++;
    } else if (again !== undefined) {
      again = { at: again.at, part: again.part + 1 };
      part = again.part;
      at = again.at + 1;
    } else return false;
  }
  // `folder/**` is what is in it, and not the folder itself: a path is one of a file.
  return at === wanted.length;
}
