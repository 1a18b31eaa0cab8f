import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fleetPaths, type FleetPaths } from '../names.ts';
import { parseLogLine, type LogLine } from './log-line.ts';
import { WorkerLog } from './worker-log.ts';

const NOW = new Date('2026-02-03T04:05:06.000Z');
let root = '';
let paths: FleetPaths;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-log-'));
  paths = fleetPaths(root, 'shop');
});
afterEach(() => rmSync(root, { recursive: true }));

function linesOf(file: string): (LogLine | undefined)[] {
  return readFileSync(file, 'utf8').trimEnd().split('\n').map(parseLogLine);
}

test('[FL-13] a line has the fields of the format, and text of a cell cannot make two of it', () => {
  const log = new WorkerLog(paths, 3, { now: () => NOW });
  log.info('task claimed', { task_id: 'A', phase: 'claim', event: 'task_claimed', data: { level: 1 } });
  log.error('task failed', { duration_ms: 12, data: { error: 'it\n{"level":"info"}\u001b[2J' } });
  expect(log.file).toBe(join(root, '.mahabharatha/logs/workers/worker-3.jsonl'));
  expect(linesOf(log.file)).toEqual([
    {
      ts: NOW.toISOString(),
      level: 'info',
      worker_id: 3,
      feature: 'shop',
      message: 'task claimed',
      task_id: 'A',
      phase: 'claim',
      event: 'task_claimed',
      data: { level: 1 },
    },
    {
      ts: NOW.toISOString(),
      level: 'error',
      worker_id: 3,
      feature: 'shop',
      message: 'task failed',
      duration_ms: 12,
      data: { error: 'it\n{"level":"info"}\u001b[2J' },
    },
  ]);
});

test('[FL-13] lines below the level are not written, long texts are cut', () => {
  const log = new WorkerLog(paths, 0, { level: 'warn' });
  expect(log.info('quiet')).toBeUndefined();
  expect(existsSync(log.file)).toBe(false);
  const line = log.warn('task failed', { data: { error: 'x'.repeat(100_000), attempt: 2 } });
  expect(line?.data).toEqual({ error: expect.stringMatching(/^x{16000} \[…\]$/), attempt: 2 });
});

test('[FL-13] a file that has become large is rotated, and the one before it goes', () => {
  const log = new WorkerLog(paths, 0, { maxBytes: 2000 });
  for (let turn = 0; turn < 100; turn++) log.info(`turn ${turn}`);
  const kept = [...linesOf(`${log.file}.1`), ...linesOf(log.file)].map((line) => line?.message);
  expect(kept.at(-1)).toBe('turn 99');
  expect(kept.length).toBeLessThan(50);
  // Without a gap.
  expect(kept).toEqual(kept.map((_, index) => `turn ${100 - kept.length + index}`));
});
