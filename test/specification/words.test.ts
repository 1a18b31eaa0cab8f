import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FILES = globSync(
  [
    '*.md',
    '{bench,docs,examples,guest,images,packaging,scripts,src,test}/**/*.{js,json,md,p[lm],py,sh,ts,yaml}',
  ],
  { cwd: ROOT, exclude: ['**/node_modules/**'] },
);

/** A product by this name, unlike that of a thing: an original file, request or message. */
const FORERUNNER =
  /\bthe\s+original\b(?!\s(?:address|branch|code|commit|content|error|file|folder|line|message|name|path|program|request|text)s?\b)/gi;

function foundIn(text: string): string[] {
  // A comment may break the line in the middle of it.
  return [...text.replaceAll(/\n\s*(?:\*|\/\/|#)?\s*/g, ' ').matchAll(FORERUNNER)].map(({ index, input }) =>
    input.slice(index, index + 60),
  );
}

test('what came before us is no word of ours', () => {
  const product = ['The', 'original'].join(' ');
  expect(foundIn(`${product}\n * files, ${product} request`)).toEqual([]);
  expect(foundIn(`${product} did; of ${product}.`)).toHaveLength(2);
  expect(foundIn(`${product.replace(' ', '\n * ')}'s format`)).toHaveLength(1);
  expect(FILES.length).toBeGreaterThan(500);
  const found = FILES.map((file) => ({ file, words: foundIn(readFileSync(`${ROOT}${file}`, 'utf8')) }));
  expect(found.filter(({ words }) => words.length > 0)).toEqual([]);
});
