import { expect, test } from 'vitest';
import type { RunProgress } from './api.ts';
import { LiveRun } from './live-run.ts';

test('[MC-12] what a phase said last is told, however soon the next one begins', () => {
  const run = new LiveRun({
    id: 'run',
    language: 'typescript',
    startedAt: 0,
    keptBytes: 1024,
    cleanStderr: (text) => text,
  });
  const seen: RunProgress[] = [];
  run.watch((progress) => seen.push(progress));
  run.enter('packages', 'reading the code');
  run.enter('packages', 'installing zod');
  run.enter('packages', 'storing zod');
  run.enter('cell', 'making it');
  run.enter('running', 'begun');
  expect(seen).toEqual([
    { phase: 'packages', message: 'reading the code' },
    { phase: 'packages', message: 'storing zod' },
    { phase: 'cell', message: 'making it' },
  ]);
});
