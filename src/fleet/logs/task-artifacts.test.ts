import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fleetPaths, sharedTaskFolder, type FleetPaths } from '../names.ts';
import { ARTIFACT_FILES, listArtifacts, TaskArtifacts, type Artifact } from './task-artifacts.ts';
import { WorkerLog } from './worker-log.ts';

let root = '';
let paths: FleetPaths;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-artifacts-'));
  paths = fleetPaths(root, 'shop');
});
afterEach(() => rmSync(root, { recursive: true }));

const fileOf = (artifact: Artifact): string =>
  join(new TaskArtifacts(paths, 'A-1').folder, ARTIFACT_FILES[artifact]);
const read = (artifact: Artifact): string => readFileSync(fileOf(artifact), 'utf8');
const bytes = (text: string): Buffer => Buffer.from(text);

test('[FL-13] attempts are appended below their headings, and are on disk as they come', () => {
  const artifacts = new TaskArtifacts(paths, 'A-1');
  const first = artifacts.openOutput('agent', 'attempt 1,\nworker 0');
  first.write(bytes('no end of line'));
  expect(read('agent')).toBe('==== attempt 1, worker 0 ====\nno end of line');
  first.close();
  first.close();
  first.write(bytes('too late'));
  const second = artifacts.openOutput('agent', 'attempt 2');
  second.write(bytes('done\n'));
  second.close();
  expect(read('agent')).toBe('==== attempt 1, worker 0 ====\nno end of line\n==== attempt 2 ====\ndone\n');
});

test('[FL-13] after an attempt that was killed the next heading stands on a line of its own', () => {
  const artifacts = new TaskArtifacts(paths, 'A-1');
  artifacts.openOutput('verification', 'attempt 1').close();
  appendFileSync(fileOf('verification'), 'cut sho');
  artifacts.openOutput('verification', 'attempt 2').close();
  expect(read('verification')).toBe('==== attempt 1 ====\ncut sho\n==== attempt 2 ====\n');
});

test.each([[1], [7], [64], [5000]])(
  '[FL-13] of a long output, in pieces of %i, head and tail are kept',
  (size) => {
    const sink = new TaskArtifacts(paths, 'A-1', { limitBytes: 100 }).openOutput('agent', 'x');
    const text = Array.from({ length: 1000 }, (_, index) => String(index % 10)).join('');
    for (let start = 0; start < text.length; start += size)
      sink.write(bytes(text.slice(start, start + size)));
    sink.close();
    expect(read('agent')).toBe(
      `==== x ====\n${text.slice(0, 50)}\n[… 900 bytes cut …]\n${text.slice(-50)}\n`,
    );
  },
);

test('[FL-13] an output of exactly the limit is whole', () => {
  const sink = new TaskArtifacts(paths, 'A-1', { limitBytes: 100 }).openOutput('agent', 'x');
  sink.write(bytes('a'.repeat(99)));
  sink.write(bytes('\n'));
  sink.close();
  expect(read('agent')).toBe(`==== x ====\n${'a'.repeat(99)}\n`);
});

test('[FL-13] diffs are written, that of work that was cut short whole; lines of the log; all goes with remove', () => {
  const artifacts = new TaskArtifacts(paths, 'A-1', { limitBytes: 10 });
  artifacts.writeDiff(bytes('0123456789abc'));
  artifacts.writeInterrupted(bytes('0123456789abc'));
  artifacts.record(new WorkerLog(paths, 0).info('begun', { task_id: 'A-1' }));
  artifacts.record(undefined);
  expect(read('diff')).toBe('0123456789\n[… 3 bytes cut; git show has all of it …]\n');
  expect(read('interrupted')).toBe('0123456789abc');
  expect(read('execution').trim().split('\n')).toHaveLength(1);
  artifacts.remove();
  artifacts.remove();
  expect(existsSync(artifacts.folder)).toBe(false);
});

test('[FL-13] features with tasks of the same id do not meet', () => {
  const [shop, blog] = ['shop', 'blog'].map((feature) => new TaskArtifacts(fleetPaths(root, feature), 'A-1'));
  shop?.writeDiff(bytes('of the shop'));
  blog?.writeDiff(bytes('of the blog'));
  expect(read('diff')).toBe('of the shop');
  shop?.remove();
  expect(listArtifacts(fleetPaths(root, 'blog'), 'A-1')).toEqual([
    join(root, '.mahabharatha/logs/features/blog/tasks/A-1/git_diff.patch'),
  ]);
});

test('[FL-13] what an earlier version kept is found until the task has something of its own', () => {
  const folder = sharedTaskFolder(paths, 'A-1');
  mkdirSync(folder, { recursive: true });
  const earlier = [join(folder, 'claude_output.txt'), join(folder, 'git_diff.patch')];
  for (const file of earlier) writeFileSync(file, 'from before\n');
  expect(listArtifacts(paths, 'A-1')).toEqual(earlier);
  expect(listArtifacts(paths, 'A-2')).toEqual([]);
  new TaskArtifacts(paths, 'A-1').writeDiff(bytes('now'));
  expect(listArtifacts(paths, 'A-1')).toEqual([fileOf('diff')]);
});
