import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, stopClean } from '../support/live-server.ts';
import type { TestServer } from '../support/server.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ADDRESS = 'http://127.0.0.1:8000';

/** Fields whose value is another one on each run or machine; of these only the type is compared. */
const VARYING = new Set([
  'execution_time_ms',
  'container_id',
  'memory_used_mb',
  'cpu_percent',
  'file_path',
  'runtime',
  'wall_time_ms',
  'cpu_time_ms',
  'peak_memory_bytes',
]);

interface Example {
  readonly commands: string;
  /** The fenced block after it, if that says what comes out. */
  readonly promised: { readonly kind: 'json' | 'text'; readonly content: string } | undefined;
}

function readExamples(markdown: string): Example[] {
  const blocks = [...markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)];
  return blocks.flatMap(([, language, commands = ''], index) => {
    if (language !== 'sh') return [];
    const [, kind, content = ''] = blocks[index + 1] ?? [];
    return [{ commands, promised: kind === 'json' || kind === 'text' ? { kind, content } : undefined }];
  });
}

/** The fields of `reply` that `promised` has too; of varying ones the type. */
function restrict(reply: unknown, promised: unknown, name = ''): unknown {
  if (VARYING.has(name)) return typeof reply;
  if (typeof promised !== 'object' || promised === null || Array.isArray(promised)) return reply;
  const given = new Map<string, unknown>(Object.entries(reply ?? {}));
  return Object.fromEntries(
    Object.entries(promised).map(([key, inner]) => [key, restrict(given.get(key), inner, key)]),
  );
}

/** Columns of a table may be of any width. */
function toLines(output: string): string[] {
  return output
    .trim()
    .split('\n')
    .map((line) => line.trim().replaceAll(/\s+/g, ' '));
}

/** What `output` says of that which is promised; all of it is there if the promise itself says the same. */
function toldOf(output: string, { promised }: Example): unknown {
  if (promised === undefined) return undefined;
  if (promised.kind === 'json') return restrict(JSON.parse(output), JSON.parse(promised.content));
  const lines = new Set(toLines(output));
  return toLines(promised.content).filter((line) => lines.has(line));
}

/** In the order in which a reader comes to them. */
const PAGES = ['README.md', 'docs/guide.md'];
const examples = PAGES.flatMap((page) => readExamples(readFileSync(join(ROOT, page), 'utf8')));
let server: TestServer;
let folder = '';
beforeAll(async () => {
  server = await startServer();
  // As if it were the checkout, but a place where examples may write.
  folder = mkdtempSync(join(tmpdir(), 'hotcell-readme-'));
  for (const name of ['hotcell', 'examples']) symlinkSync(join(ROOT, name), join(folder, name));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await stopClean(server);
});

async function run(commands: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', commands.replaceAll(ADDRESS, server.url)], {
    cwd: folder,
    env: {
      PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
      HOME: folder,
      HOTCELL_STATE_DIR: server.stateDirectory,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', resolve);
  });
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  return { code, stdout, stderr };
}

describe('README and guide', () => {
  test('[WB-04] has examples, and most say what comes out', () => {
    expect(examples.length).toBeGreaterThanOrEqual(8);
    expect(examples.filter(({ promised }) => promised !== undefined).length).toBeGreaterThanOrEqual(7);
  });

  test.each(examples)('[WB-04] runs: $commands', async (example) => {
    const { code, stdout, stderr: all } = await run(example.commands);
    // What takes longer than a second says so, and a busy machine takes long.
    const stderr = all.replace(/^hotcell: makes a session\n/m, '');
    expect({ code, stderr, isSilent: stdout === '' }).toEqual({ code: 0, stderr: '', isSilent: false });
    expect(toldOf(stdout, example)).toEqual(toldOf(example.promised?.content ?? '', example));
  });

  test('[WB-04] names the address that the server has by default', async () => {
    const { stdout } = await run('./hotcell config --json');
    expect(JSON.parse(stdout)).toMatchObject({ host: { value: '127.0.0.1' }, port: { value: 8000 } });
  });
});
