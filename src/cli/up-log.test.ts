import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { COMPILE_CACHE, MAIN } from '../../test/support/command.ts';
import { PROMISES } from '../core/enforcement.ts';

const PATIENT = { timeout: 20_000 };

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-up-'));
  // Cells get through it.
  chmodSync(folder, 0o755);
});
afterAll(() => rmSync(folder, { recursive: true }));

const WEAKER = PROMISES.join(',');
const UP = ['up', '--driver', 'subprocess', '--weaker', WEAKER, '--port', '0', '--log-level', 'debug'];
const STARTS = {
  // `script` makes a terminal, and ends with the command in it.
  'a terminal': ['script', '-qec', [process.execPath, MAIN, ...UP].join(' '), '/dev/null'],
  'a pipe': [process.execPath, MAIN, ...UP],
} as const;

/** All lines of a server that answers one request and is stopped, stdout and stderr together. */
async function linesOf(start: keyof typeof STARTS, logFormat: string): Promise<string[]> {
  const [program, ...args] = STARTS[start];
  const child = spawn(program, args, {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      HOTCELL_STATE_DIR: join(folder, 'state'),
      HOTCELL_LOG_FORMAT: logFormat,
      SHELL: '/bin/sh',
      ...COMPILE_CACHE,
    },
  });
  let shown = '';
  const closed = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
  });
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (shown += text));
  const url = await vi.waitUntil(() => /ready on (http:[\w.:/]+)/.exec(shown)?.[1], PATIENT);
  expect((await fetch(`${url}/no/such/path`)).status).toBe(404);
  await vi.waitUntil(() => shown.includes('request'), PATIENT);
  if (start === 'a terminal') child.stdin.write('\u0003');
  else child.kill('SIGINT');
  await closed;
  return shown.split(/\r?\n/);
}

const isJson = (line: string): boolean => line.startsWith('{');

test.each([
  ['a terminal', 'auto'],
  ['a pipe', 'text'],
] as const)('on %s, with the format %s, people get lines for people', async (start, format) => {
  const lines = await linesOf(start, format);
  expect(lines.filter(isJson)).toEqual([]);
  expect(lines).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^hotcell: debug: request served method=GET route=unknown status=404 ms=/),
      expect.stringMatching(/^(\^C)?hotcell: server stopping signal=SIGINT$/),
      'hotcell: server stopped',
    ]),
  );
  // What the server is, is told once.
  expect(lines.filter((line) => /\bready\b/.test(line))).toHaveLength(1);
});

// What a pipe gets by itself is in test/e2e/lifecycle.test.ts.
test('a terminal gets JSON where the settings say so', async () => {
  const lines = await linesOf('a terminal', 'json');
  const messages = lines.map((line) => line.replace('^C', '')).filter(isJson);
  expect(messages.map((line): unknown => JSON.parse(line))).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ msg: 'server ready', driver: 'subprocess' }),
      expect.objectContaining({ msg: 'request served', status: 404 }),
      expect.objectContaining({ msg: 'server stopped' }),
    ]),
  );
  expect(lines.filter((line) => line.includes('hotcell: stop'))).toEqual([]);
});
