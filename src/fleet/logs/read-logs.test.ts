import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fleetPaths, workerLogFile, type FleetPaths } from '../names.ts';
import { endOfLines, linesBackward, linesForward, LONGEST_LINE } from './file-lines.ts';
import { readLogs, type LogWish } from './read-logs.ts';

let root = '';
let paths: FleetPaths;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-logs-'));
  paths = fleetPaths(root, 'shop');
  mkdirSync(paths.workerLogs, { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true }));

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const line = (second: number, message: string, more: object = {}): string =>
  `${JSON.stringify({ ts: at(second), level: 'info', worker_id: 0, feature: 'shop', message, ...more })}\n`;

async function messages(wish: Partial<LogWish> = {}): Promise<string[]> {
  const found: string[] = [];
  for await (const { message } of readLogs(paths, { tail: 100, ...wish })) found.push(message);
  return found;
}

describe('what is kept', () => {
  beforeEach(() => {
    writeFileSync(`${workerLogFile(paths, 0)}.1`, line(1, 'a1') + line(3, 'a3'));
    writeFileSync(workerLogFile(paths, 0), `${line(5, 'a5')}{"torn\n${line(7, 'a7')}{"ts":"being writ`);
    writeFileSync(workerLogFile(paths, 1), line(2, 'b2') + line(4, 'b4') + line(6, 'b6'));
    writeFileSync(join(paths.workerLogs, 'worker-x.jsonl'), line(1, 'not a worker'));
  });

  test.each([100, 7, Infinity])('[FL-13] merged by time, with rotated files, tail %d', async (tail) => {
    expect(await messages({ tail })).toEqual(['a1', 'b2', 'a3', 'b4', 'a5', 'b6', 'a7']);
  });

  test('[FL-13] the last ones, of all and of one worker', async () => {
    expect(await messages({ tail: 3 })).toEqual(['a5', 'b6', 'a7']);
    expect(await messages({ tail: 3, worker: 0 })).toEqual(['a3', 'a5', 'a7']);
    expect(await messages({ tail: 0 })).toEqual([]);
    expect(await messages({ worker: 9 })).toEqual([]);
  });

  test.each([100, Infinity])('[FL-13] only between two times, tail %d', async (tail) => {
    expect(await messages({ tail, since: new Date(at(3)), until: new Date(at(6)) })).toEqual([
      'a3',
      'b4',
      'a5',
      'b6',
    ]);
  });
});

test('[FL-13] filters by feature, level, task, phase, event and text', async () => {
  writeFileSync(
    workerLogFile(paths, 0),
    line(1, 'one', { task_id: 'A', phase: 'claim', event: 'task_claimed', level: 'debug' }) +
      line(2, 'two', { task_id: 'A', phase: 'verify', level: 'warning', data: { command: 'npm TEST' } }) +
      line(3, 'three', { task_id: 'B', level: 'error', feature: 'blog' }) +
      line(4, 'four', { task_id: 'B', level: 'error', feature: null, phase: null, event: 'task_failed' }),
  );
  expect(await messages({ feature: 'shop' })).toEqual(['one', 'two', 'four']);
  expect(await messages({ level: 'warn' })).toEqual(['two', 'three', 'four']);
  expect(await messages({ level: 'error' })).toEqual(['three', 'four']);
  expect(await messages({ task: 'A', level: 'info' })).toEqual(['two']);
  expect(await messages({ phase: 'claim' })).toEqual(['one']);
  expect(await messages({ event: 'task_failed' })).toEqual(['four']);
  expect(await messages({ search: 'npm test' })).toEqual(['two']);
});

test('[FL-13] follows through rotation, half lines and files that appear later', async () => {
  writeFileSync(workerLogFile(paths, 0), line(1, 'old'));
  const stop = new AbortController();
  const logs = readLogs(paths, { tail: 1, follow: true, signal: stop.signal });
  const next = async (): Promise<string | undefined> => {
    const { value } = (await logs.next()) as { value?: { message: string } };
    return value?.message;
  };
  expect(await next()).toBe('old');

  const whole = line(2, 'in two pieces');
  appendFileSync(workerLogFile(paths, 0), whole.slice(0, 30));
  appendFileSync(workerLogFile(paths, 1), line(3, 'a new worker'));
  expect(await next()).toBe('a new worker');
  appendFileSync(workerLogFile(paths, 0), whole.slice(30));
  expect(await next()).toBe('in two pieces');

  appendFileSync(workerLogFile(paths, 0), line(4, 'before the rotation'));
  renameSync(workerLogFile(paths, 0), `${workerLogFile(paths, 0)}.1`);
  appendFileSync(workerLogFile(paths, 0), line(5, 'after the rotation'));
  expect(await next()).toBe('before the rotation');
  expect(await next()).toBe('after the rotation');

  writeFileSync(workerLogFile(paths, 0), line(6, 'emptied'));
  expect(await next()).toBe('emptied');
  stop.abort();
  expect((await logs.next()).done).toBe(true);
});

test('[FL-13] the end of a huge file costs little, also with lines without end in it', async () => {
  const block = line(1, 'x'.repeat(900)).repeat(1000);
  for (let turn = 0; turn < 60; turn++) appendFileSync(workerLogFile(paths, 0), block);
  appendFileSync(workerLogFile(paths, 0), `${'y'.repeat(3 * LONGEST_LINE)}\n${line(2, 'last')}`);
  const begin = process.memoryUsage().rss;
  expect((await messages({ tail: 2 })).map((message) => message.slice(0, 4))).toEqual(['xxxx', 'last']);
  expect(process.memoryUsage().rss - begin).toBeLessThan(40 * 1024 ** 2);
});

describe('lines of a file', () => {
  test.each([[1], [100], [64 * 1024 - 1], [64 * 1024], [64 * 1024 + 1], [200_000]])(
    '[FL-13] of %i bytes each are the same in both directions',
    async (length) => {
      const path = join(root, 'lines');
      const lines = ['a', 'ä', 'c', '€'].map((letter) => letter.repeat(length));
      writeFileSync(path, `${lines.join('\n')}\npart`);
      await using file = await open(path);
      const { size } = await file.stat();
      const end = await endOfLines(file, size);
      expect(end).toBe(size - 4);
      const backward: string[] = [];
      for await (const text of linesBackward(file, end)) backward.unshift(text);
      expect(backward).toEqual(lines);
      const forward: string[] = [];
      for await (const { line: text } of linesForward(file, { from: 0, to: size })) forward.push(text);
      expect(forward).toEqual(lines);
    },
  );
});
