import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { REQUIREMENTS } from './requirements.ts';

const files = globSync(['src/**/*.test.ts', 'guest/**/*.test.ts', 'test/**/*.ts']);
const titles = files.flatMap(
  (file) => readFileSync(file, 'utf8').match(/(?:['"`(]|^\s*)\[[A-Z]{2}-\d\d(?:, [A-Z]{2}-\d\d)*\]/gm) ?? [],
);
const cited = new Set(titles.flatMap((title) => title.match(/[A-Z]{2}-\d\d/g) ?? []));

test('every promise has a test that cites it', () => {
  expect(Object.keys(REQUIREMENTS).filter((id) => !cited.has(id))).toEqual([]);
});

test('no test cites a promise that does not exist', () => {
  expect([...cited].filter((id) => !(id in REQUIREMENTS))).toEqual([]);
});
