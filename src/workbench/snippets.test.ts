import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findImportedSnippets, importUsed, readDescription } from './snippet-text.ts';
import { FileSnippets } from './snippets.ts';

const ME = { tenant: 'me' };
const CODE = '/** @description says hello */\nexport const hello = 1;';
const refusal = expect.objectContaining({ code: 'SNIPPET_REFUSED' });
const unknown = expect.objectContaining({ code: 'SNIPPET_UNKNOWN' });

let folder: string;
let snippets: FileSnippets;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-snippets-'));
  snippets = new FileSnippets(folder, { max: 3, bytes: 1024 });
});
afterEach(() => rmSync(folder, { recursive: true }));

test('[MC-15] saved, listed, read, replaced and removed', async () => {
  expect(await snippets.list(ME)).toEqual([]);
  expect(await snippets.save(ME, { name: 'hello', code: CODE })).toEqual({
    name: 'hello',
    description: 'says hello',
  });
  await snippets.save(ME, { name: 'hello', code: `${CODE}\n// more` });
  expect(await snippets.list(ME)).toEqual([{ name: 'hello', description: 'says hello' }]);
  expect((await snippets.get(ME, 'hello')).code).toBe(`${CODE}\n// more`);
  expect(readdirSync(join(folder, 'me'))).toEqual(['hello.ts']);
  await snippets.remove(ME, 'hello');
  await expect(snippets.remove(ME, 'hello')).rejects.toThrow(unknown);
  await expect(snippets.get(ME, 'hello')).rejects.toThrow(unknown);
});

test('[MC-15] others of the same name belong to others, whatever a tenant is called', async () => {
  await snippets.save(ME, { name: 'hello', code: CODE });
  for (const tenant of ['other', '../me', 'ME', 'me/', '', '.', 'a'.repeat(300), 'm\0e']) {
    expect(await snippets.list({ tenant })).toEqual([]);
    await snippets.save({ tenant }, { name: 'hello', code: `// @description of ${tenant.length}\n` });
  }
  expect((await snippets.get(ME, 'hello')).code).toBe(CODE);
});

test.each(['', '../x', 'a/b', 'a.b', '.hidden', 'ä', 'a'.repeat(65), 'a\n'])(
  '[MC-15] %j is no name',
  async (name) => {
    await expect(snippets.save(ME, { name, code: CODE })).rejects.toThrow(refusal);
    await expect(snippets.get(ME, name)).rejects.toThrow(unknown);
  },
);

test('[MC-15] without a description, too long or too many: refused', async () => {
  await expect(snippets.save(ME, { name: 'a', code: 'export const a = "@description no";' })).rejects.toThrow(
    refusal,
  );
  await expect(snippets.save(ME, { name: 'a', code: CODE + ' '.repeat(1024) })).rejects.toThrow(refusal);
  for (const name of ['a', 'b', 'c']) await snippets.save(ME, { name, code: CODE });
  await expect(snippets.save(ME, { name: 'd', code: CODE })).rejects.toThrow(refusal);
  await snippets.save(ME, { name: 'c', code: CODE });
});

test('[MC-15] what else lies in the folder is none', async () => {
  mkdirSync(join(folder, 'me'));
  for (const name of ['.half-1', 'notes.txt', 'a b.ts', 'old.ts'])
    writeFileSync(join(folder, 'me', name), '');
  expect(await snippets.list(ME)).toEqual([{ name: 'old', description: '' }]);
});

test.each([
  ['// @description in a line', 'in a line'],
  ['/** @description in one */', 'in one'],
  ['/**\n * Words.\n * @description   of a block  \n */', 'of a block'],
  ['const a = "@description";', undefined],
  ['// @description', undefined],
])('[MC-15] the description of %j', (code, description) => {
  expect(readDescription(code)).toBe(description);
});

// What looks at everything once for each beginning would take longer than a test may.
test('[MC-15] a huge comment does not keep us busy', () => {
  expect(readDescription('/*'.repeat(500_000))).toBeUndefined();
  expect(importUsed('export '.repeat(200_000), new Map())).toHaveLength(1_400_000);
});

test('[MC-15] imports are found, and @use-snippet becomes one without moving a line', () => {
  expect(
    findImportedSnippets('import a from "snippets/a"; import("snippets/b.ts"); "snippets/../c"'),
  ).toEqual(['a', 'b']);
  const used = new Map([
    ['a', 'export const one = 1;\nexport async function two() {}\nexport class Three {}\nexport default 4;'],
    ['b', 'console.log("side effect")'],
  ]);
  expect(importUsed('// first\n// @use-snippet: a\n  //@use-snippet:b\n// @use-snippet: none\nx', used)).toBe(
    '// first\nimport { one, two, Three } from "snippets/a";\n  import "snippets/b";\n// @use-snippet: none\nx',
  );
});
