import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CALL = /\blog\.(?:debug|info|warn|error)\(/g;
/** What an operator greps for: the thing, and what became of it. Ids and figures are fields. */
const LINE = /^[a-z]+( [a-z]+){1,4}$/;

const sources = globSync('src/**/*.ts', { cwd: ROOT }).filter((path) => !/\.(test|double)\.ts$/.test(path));

/** The words between the opening bracket at `from` and the one that closes it. */
function insideBracket(text: string, from: number): string {
  let depth = 1;
  let end = from;
  for (; depth > 0 && end < text.length; end++) {
    if ('([{'.includes(text[end] ?? '')) depth++;
    if (')]}'.includes(text[end] ?? '')) depth--;
  }
  return text.slice(from, end - 1);
}

const messages = sources.flatMap((path) => {
  const text = readFileSync(`${ROOT}${path}`, 'utf8');
  return [...text.matchAll(CALL)].map((call) => {
    const words = insideBracket(text, call.index + call[0].length);
    // That of a worker begins with the words.
    const message = /^\s*'([^']*)'/.exec(words) ?? /'([^']*)',?\s*$/.exec(words);
    return { path, message: message?.[1] ?? words };
  });
});

test('every line of the log is a noun and what became of it', () => {
  expect(messages.length).toBeGreaterThan(80);
  expect(messages.filter(({ message }) => !LINE.test(message))).toEqual([]);
});
