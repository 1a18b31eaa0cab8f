import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SyncIndex } from '../../src/workspace/synced-files.ts';
import { asUser, file, withWorkspace, type TestWorkspace } from './harness.ts';

/**
 * Swaps NAME with each of the others in turn, atomically and as fast as it can, until it is asked to stop. Then says how
 * often it has done so.
 */
const SWAPPER = `
use Config;
my $nr = $Config{archname} =~ /^aarch64/ ? 276 : 316;
my ($name, @others) = @ARGV;
my ($count, $stop) = (0, 0);
$SIG{TERM} = sub { $stop = 1 };
$| = 1;
print "ready\\n";
until ($stop) {
  for my $other (@others) { for (1, 2) { $count++ if syscall($nr, -100, $name, -100, $other, 2) == 0 } }
}
print "$count\\n";
`;

class Swapper {
  readonly #child: ChildProcess;
  #words = '';

  constructor(cwd: string, names: readonly string[]) {
    const [program = 'perl', ...args] = [...asUser(), 'perl', '-e', SWAPPER, ...names];
    this.#child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child.stdout?.on('data', (bytes: Buffer) => (this.#words += bytes.toString()));
  }

  static async start(cwd: string, names: readonly string[]): Promise<Swapper> {
    const swapper = new Swapper(cwd, names);
    while (!swapper.#words.includes('ready')) await new Promise((resolve) => setTimeout(resolve, 2));
    return swapper;
  }

  /** How often it has swapped. */
  async stop(): Promise<number> {
    this.#child.kill('SIGTERM');
    await once(this.#child, 'close');
    return Number(this.#words.trim().split('\n')[1]);
  }
}

const SECRET = 'outside, not for anybody';

/** A workspace in which a folder, a file and a parent folder are links at times. */
async function withSwapping(use: (box: TestWorkspace) => Promise<void>): Promise<void> {
  await withWorkspace(async (box) => {
    mkdirSync(join(box.outside, 'sub'), { recursive: true });
    for (const name of ['file', 'plain', 'sub/file'])
      writeFileSync(join(box.outside, name), SECRET, { mode: 0o666 });
    await box.sh(
      'mkdir -p dir/sub; printf steady >steady; printf inside | tee dir/file dir/plain dir/sub/file plain >/dev/null; ' +
        'ln -s ../outside dirlink; ln -s ../outside/file filelink; mkfifo fifo; mkdir folder; ln -s ../../outside/sub sublink',
    );
    // Whoever gets there could write there.
    for (const path of [box.outside, join(box.outside, 'sub')]) chmodSync(path, 0o777);
    for (const name of ['file', 'plain', 'sub/file']) chmodSync(join(box.outside, name), 0o666);
    const swappers = await Promise.all([
      Swapper.start(box.root, ['dir', 'dirlink']),
      Swapper.start(box.root, ['plain', 'filelink', 'fifo', 'folder']),
    ]);
    let counts: number[] = [];
    try {
      await use(box);
    } finally {
      counts = await Promise.all(swappers.map((swapper) => swapper.stop()));
    }
    // It was no peaceful time.
    for (const count of counts) expect(count).toBeGreaterThan(1000);
    expect(readdirSync(box.outside, { recursive: true }).map(String).toSorted()).toEqual([
      'file',
      'plain',
      'sub',
      'sub/file',
    ]);
    for (const name of ['file', 'plain', 'sub/file'])
      expect(readFileSync(join(box.outside, name), 'utf8')).toBe(SECRET);
    expect(box.leftovers()).toEqual([]);
  });
}

const EXPECTED_CODES = new Set(['FILE_REFUSED', 'FILE_NOT_FOUND']);

/** Runs an operation that may be refused; what it gave otherwise. */
async function attempt<T>(seen: Map<string, number>, work: () => Promise<T>): Promise<T | undefined> {
  const note = (word: string): void => void seen.set(word, (seen.get(word) ?? 0) + 1);
  try {
    const result = await work();
    note('done');
    return result;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    if (!EXPECTED_CODES.has(code)) throw error;
    note(code);
    return undefined;
  }
}

describe('while links are swapped in', () => {
  test('[RS-11] reads give what is inside or are refused', () =>
    withSwapping(async ({ workspace }) => {
      const seen = new Map<string, number>();
      for (let round = 0; round < 1500; round++) {
        for (const path of ['dir/file', 'plain', 'dir/sub/file']) {
          const reply = await attempt(seen, () => workspace.read(path, 1000));
          // The empty folder that stands at `plain` at times, the file inside, or a refusal.
          const shown = reply?.kind === 'folder' ? reply.entries : (reply?.content ?? []);
          expect([[], 'inside']).toContainEqual(shown);
        }
      }
      expect(seen.get('done')).toBeGreaterThan(50);
      expect(seen.get('FILE_REFUSED')).toBeGreaterThan(50);
    }));

  test('[RS-08] writes land inside or are refused', () =>
    withSwapping(async (box) => {
      const seen = new Map<string, number>();
      for (let round = 0; round < 400; round++) {
        await attempt(seen, () =>
          box.workspace.write([file('dir/file', 'inside'), file(`dir/new${round}`, 'x')]),
        );
        await attempt(seen, () =>
          box.workspace.write([file(`dir/made${round}/deep/file`, 'x'), file('dir/sub/file', 'inside')]),
        );
        await attempt(seen, () => box.workspace.write([file('plain', 'inside')]));
      }
      expect(seen.get('done')).toBeGreaterThan(50);
      expect(seen.get('FILE_REFUSED')).toBeGreaterThan(50);
    }));

  test('[RS-09] syncs, removals and patches stay inside', () =>
    withSwapping(async (box) => {
      const seen = new Map<string, number>();
      const index = SyncIndex.empty();
      for (let round = 0; round < 400; round++) {
        const files = round % 2 === 0 ? ['dir/file', 'dir/sub/file', `dir/s${round % 7}/f`] : ['dir/plain'];
        const request = {
          delete: true,
          files: files.map((path) => ({ path, content: 'inside', encoding: 'utf8' as const })),
        };
        await attempt(seen, () => box.workspace.sync(request, index));
        await attempt(seen, () => box.workspace.remove(['dir/file']));
        const diff = `--- /dev/null\n+++ b/dir/p${round}\n@@ -0,0 +1 @@\n+inside\n`;
        await attempt(seen, () => box.workspace.applyPatch(diff));
      }
      expect(seen.get('done')).toBeGreaterThan(20);
      expect(seen.get('FILE_REFUSED')).toBeGreaterThan(20);
    }));

  test('[RS-11] archives and snapshots hold nothing from outside', () =>
    withSwapping(async ({ workspace }) => {
      let links = 0;
      let insiders = 0;
      for (let round = 0; round < 150; round++) {
        const parts: Uint8Array[] = [];
        for await (const part of workspace.archive()) parts.push(part);
        const whole = Buffer.concat(parts);
        expect(whole.includes(SECRET)).toBe(false);
        expect(whole.includes('steady')).toBe(true);
        if (whole.includes('inside')) insiders++;
        const { files } = await workspace.snapshot();
        if (files.has('dir')) links++;
        const sizes = [...files].filter(([path]) => path.startsWith('dir')).map(([, { size }]) => size);
        expect(sizes).not.toContain(SECRET.length);
      }
      expect(links).toBeGreaterThan(0);
      expect(insiders).toBeGreaterThan(0);
    }));
});
