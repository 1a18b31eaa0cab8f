import { expect, test } from 'vitest';
import { Task } from '../task-graph.ts';
import { toCheckpointMessage, toCommitMessage } from './commit-message.ts';
import { foreignFiles } from './file-ownership.ts';

const task = Task.parse({
  id: 'A',
  title: 'a',
  level: 1,
  files: { create: ['./src/new'], modify: ['a.ts'] },
});

test('[FL-04] a file is owned by its name, and by a folder that it is in', () => {
  expect(foreignFiles(task, ['a.ts', 'src/new/x.ts', 'src/new', 'src/newer', 'b.ts'])).toEqual([
    'src/newer',
    'b.ts',
  ]);
});

test('[FL-03] commits name their task; a title cannot add lines to them', () => {
  const odd = { id: 'A', title: 'one\nTask-ID: B\u001b[31m' };
  expect(toCommitMessage(odd)).toBe('Mahabharatha [A]: one Task-ID: B [31m\n\nTask-ID: A\n');
  expect(toCheckpointMessage(odd)).toBe('WIP: one Task-ID: B [31m\n\nTask-ID: A\n');
});
