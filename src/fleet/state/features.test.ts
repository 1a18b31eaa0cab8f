import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findFeature, listFeatures } from './features.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-features-'));
  mkdirSync(join(root, '.mahabharatha/state'), { recursive: true });
  mkdirSync(join(root, '.gsd'));
});
afterEach(() => rmSync(root, { recursive: true }));

function writeState(name: string, seconds: number, feature = name): void {
  const file = join(root, '.mahabharatha/state', `${name}.json`);
  writeFileSync(file, JSON.stringify({ feature }));
  utimesSync(file, seconds, seconds);
}

test('[FL-15] named, variable, current, newest: in this order', () => {
  writeState('old', 1000);
  writeState('new', 2000);
  // What stands beside states is none.
  writeState('new.orchestrator', 3000, 'new');
  writeState('new-heartbeat-0', 3000, 'new');
  writeFileSync(join(root, '.mahabharatha/state/torn.json'), '{"feature": "to');
  expect(listFeatures(root)).toEqual(['new', 'old']);
  expect(findFeature(root, {})).toBe('new');
  writeFileSync(join(root, '.gsd/.current-feature'), 'shop\n');
  expect(findFeature(root, {})).toBe('shop');
  expect(findFeature(root, { variable: 'blog' })).toBe('blog');
  expect(findFeature(root, { variable: '' })).toBe('shop');
  expect(findFeature(root, { named: 'mail', variable: 'blog' })).toBe('mail');
});

test.each(['.gsd/specs/shop', '.gsd/tasks/shop', '.gsd/tasks', '.'])(
  '[FL-15] a single task graph needs no name, in %s; of two none is taken',
  (folder) => {
    mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, folder, 'task-graph.json'), '{"feature": "shop", "tasks": []}');
    // Of these none has a graph, and the last is no name.
    for (const name of ['idea', 'folder/task-graph.json', 'x.lock'])
      mkdirSync(join(root, '.gsd/specs', name), { recursive: true });
    writeFileSync(join(root, '.gsd/specs/x.lock/task-graph.json'), '{}');
    expect(findFeature(root, {})).toBe('shop');
    mkdirSync(join(root, '.gsd/specs/blog'));
    writeFileSync(join(root, '.gsd/specs/blog/task-graph.json'), '{}');
    expect(() => findFeature(root, {})).toThrow(
      expect.objectContaining({
        code: 'FLEET_UNKNOWN',
        hint: 'Name one with --feature: there are task graphs of blog, shop.',
      }),
    );
    writeState('mail', 1000);
    expect(findFeature(root, {})).toBe('mail');
  },
);

test('[FL-15] none is an error that says what to do', () => {
  expect(() => findFeature(root, {})).toThrow(expect.objectContaining({ code: 'FLEET_UNKNOWN' }));
});

test.each([['../x'], ['a/b'], ['-x'], ['x.lock']])(
  '[FL-15] %s is never a feature, whoever says so',
  (name) => {
    writeFileSync(join(root, '.gsd/.current-feature'), name);
    for (const wish of [{ named: name }, { variable: name }, {}]) {
      expect(() => findFeature(root, wish)).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }));
    }
  },
);
