import { appendFileSync, closeSync, mkdtempSync, openSync, readFileSync, readdirSync } from 'node:fs';
import { rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bundle } from '../support/bundle-command.ts';

test('who starts the command of the tests while another run bundles it reads every file to its end', async () => {
  using stack = new DisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'hotcell-bundle-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  await bundle(folder);
  const names = readdirSync(folder);
  expect(names).toContain('main.mjs');
  for (const name of names) appendFileSync(join(folder, name), '// as it was');
  const open = names.map((name) => {
    const file = openSync(join(folder, name), 'r');
    stack.defer(() => closeSync(file));
    return file;
  });
  // Of a run with other sources, which may still import it, and of one that has ended long ago.
  writeFileSync(join(folder, 'young.mjs'), '');
  writeFileSync(join(folder, 'old.mjs'), '');
  utimesSync(join(folder, 'old.mjs'), 0, 0);
  await bundle(folder);
  for (const file of open) expect(readFileSync(file, 'utf8')).toMatch(/\/\/ as it was$/);
  for (const name of names) expect(readFileSync(join(folder, name), 'utf8')).not.toContain('// as it was');
  expect(readdirSync(folder).toSorted()).toEqual([...names, 'young.mjs'].toSorted());
});
