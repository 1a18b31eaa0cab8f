import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readGraph } from './read-graph.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-graph-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const graphFor = (feature: string): string =>
  JSON.stringify({ feature, tasks: [{ id: 'A', title: 'A', level: 1 }] });

function put(path: string, text: string): string {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

const found = async (named?: string): Promise<string> =>
  (await readGraph(root, 'auth', named)).path.slice(root.length + 1);

test('[FL-04] the named file comes first, then the usual places in their order', async () => {
  const places = [
    '.gsd/old/2/task-graph.json',
    'task-graph.json',
    '.gsd/tasks/task-graph.json',
    '.gsd/tasks/auth/task-graph.json',
    '.gsd/specs/auth/task-graph.json',
  ];
  for (const place of places) {
    put(place, graphFor('auth'));
    expect(await found()).toBe(place);
  }
  put('mine.json', `\uFEFF${graphFor('auth')}`);
  expect(await found('mine.json')).toBe('mine.json');
});

test('[FL-04] of several below .gsd the one for the feature is taken; none of them is a question', async () => {
  put('.gsd/specs/shop/task-graph.json', graphFor('shop'));
  const only = await readGraph(root, 'auth');
  expect(only.warnings).toEqual(['feature: the graph is for "shop", and is used for auth']);
  put('.gsd/specs/cart/task-graph.json', graphFor('cart'));
  await expect(found()).rejects.toThrow(/which task graph is for auth\? There are .*cart.*shop/);
  put('.gsd/x/task-graph.json', graphFor('auth'));
  expect(await found()).toBe('.gsd/x/task-graph.json');
});

test('[FL-04] links of the repository are not followed', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'hotcell-outside-'));
  try {
    writeFileSync(join(outside, 'task-graph.json'), graphFor('auth'));
    mkdirSync(join(root, '.gsd/specs'), { recursive: true });
    symlinkSync(outside, join(root, '.gsd/specs/auth'));
    symlinkSync(outside, join(root, '.gsd/tasks'));
    symlinkSync(join(outside, 'task-graph.json'), join(root, 'task-graph.json'));
    await expect(found()).rejects.toThrow(/there is no task graph for auth/);
    // Whoever names one has chosen it.
    expect((await readGraph(root, 'auth', 'task-graph.json')).graph.feature).toBe('auth');
  } finally {
    rmSync(outside, { recursive: true });
  }
});

test('[FL-04] what is missing or unreadable is said with its place', async () => {
  await expect(found()).rejects.toMatchObject({
    hint: expect.stringContaining('.gsd/specs/auth/task-graph.json'),
  });
  await expect(found('nowhere.json')).rejects.toThrow(`there is no file ${join(root, 'nowhere.json')}`);
  put('broken.json', '{"feature": ');
  await expect(found('broken.json')).rejects.toThrow(/^broken\.json: is not JSON: /);
  await expect(found('.')).rejects.toThrow(/cannot be read: it is not a file/);
  put('bad.json', JSON.stringify({ feature: 'auth', tasks: [] }));
  await expect(found('bad.json')).rejects.toThrow(
    'bad.json: the task graph has 1 problem:\n  tasks: must have at least one task',
  );
});
