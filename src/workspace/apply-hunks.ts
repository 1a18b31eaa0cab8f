import { patchRefused, type FilePatch, type Hunk } from './patch.ts';

/** SECURITY: looking for another place costs at most this many lines in all, or a small diff could keep us busy for long. */
const MOST_SEARCHED_LINES = 20_000_000;

/**
 * The text after the patch. Every line that the hunk keeps or removes must be there exactly, at the place that the diff
 * says or, failing that, at the only other one where all of them are.
 */
export function applyHunks({ path, hunks }: Pick<FilePatch, 'path' | 'hunks'>, text: string): string {
  const lines = toLines(text);
  const result: string[] = [];
  let done = 0;
  let shift = 0;
  let searched = 0;
  for (const [index, hunk] of hunks.entries()) {
    const old = hunk.lines.filter(({ kind }) => kind !== 'added').map((line) => line.text);
    const said = hunk.oldCount === 0 ? hunk.oldStart : hunk.oldStart - 1;
    const place = { at: said + shift, from: done };
    if (!fits(lines, old, place)) {
      searched += lines.length + old.length;
      if (searched > MOST_SEARCHED_LINES)
        throw patchRefused(`${path}: too many hunks are not at their place`);
      place.at = requireOnlyPlace(lines, old, { path, number: index + 1, from: done });
    }
    shift = place.at - said;
    for (let at = done; at < place.at; at++) result.push(lines[at] ?? '');
    pushNew(result, hunk);
    done = place.at + old.length;
  }
  for (let at = done; at < lines.length; at++) result.push(lines[at] ?? '');
  return requireWholeLines(result, path);
}

/** Each with its line end. */
function toLines(text: string): string[] {
  const lines = text.split('\n').map((line) => `${line}\n`);
  const last = lines.pop() ?? '\n';
  if (last !== '\n') lines.push(last.slice(0, -1));
  return lines;
}

function pushNew(result: string[], hunk: Hunk): void {
  for (const { kind, text } of hunk.lines) if (kind !== 'removed') result.push(text);
}

/** A line without an end is the last one, or it would run into the next. */
function requireWholeLines(lines: readonly string[], path: string): string {
  const broken = lines.findIndex((line) => !line.endsWith('\n'));
  if (broken >= 0 && broken < lines.length - 1) {
    throw patchRefused(`${path}: a line without a line end would not be the last one`);
  }
  return lines.join('');
}

function fits(
  lines: readonly string[],
  old: readonly string[],
  { at, from }: { readonly at: number; readonly from: number },
): boolean {
  if (at < from || at + old.length > lines.length) return false;
  return old.every((text, offset) => lines[at + offset] === text);
}

function requireOnlyPlace(
  lines: readonly string[],
  old: readonly string[],
  { path, number, from }: { readonly path: string; readonly number: number; readonly from: number },
): number {
  // Nothing to look for would be found everywhere.
  const places = old.length === 0 ? [] : findPlaces(lines, old, from);
  const [place] = places;
  if (place === undefined)
    throw patchRefused(`${path}: hunk ${number} does not fit: its lines are not in the file`);
  if (places.length > 1) {
    throw patchRefused(
      `${path}: hunk ${number} is not at its place, and its lines are in the file more than once`,
    );
  }
  return place;
}

/** The first two places, after Knuth, Morris and Pratt: in one pass, whatever the lines are. */
function findPlaces(lines: readonly string[], old: readonly string[], from: number): number[] {
  const fallbacks = toFallbacks(old);
  const places: number[] = [];
  let matched = 0;
  for (let at = from; at < lines.length && places.length < 2; at++) {
    while (matched > 0 && lines[at] !== old[matched]) matched = fallbacks[matched - 1] ?? 0;
    if (lines[at] === old[matched]) matched++;
    if (matched < old.length) continue;
    places.push(at + 1 - old.length);
    matched = fallbacks[matched - 1] ?? 0;
  }
  return places;
}

/** For each beginning of the pattern, the length of the longest one that it also ends with. */
function toFallbacks(pattern: readonly string[]): number[] {
  const fallbacks = [0];
  let length = 0;
  for (let at = 1; at < pattern.length; at++) {
    while (length > 0 && pattern[at] !== pattern[length]) length = fallbacks[length - 1] ?? 0;
    if (pattern[at] === pattern[length]) length++;
    fallbacks.push(length);
  }
  return fallbacks;
}
