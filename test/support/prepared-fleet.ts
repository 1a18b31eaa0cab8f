import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FleetState } from '../../src/fleet/fleet-state.ts';
import { fleetPaths, type FleetPaths } from '../../src/fleet/names.ts';
import { StateStore } from '../../src/fleet/state/state-store.ts';
import { COMPILE_CACHE, MAIN } from './command.ts';
import { dataDirectoryOf, makeStateDirectory, removeFolders } from './server.ts';

const HOLDER = fileURLToPath(new URL('./fleet-state-child.ts', import.meta.url));

interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A repository with one commit and what a fleet would have left in it, for commands that look at that. */
export class PreparedFleet implements AsyncDisposable {
  readonly root: string;
  readonly #hotcellState = makeStateDirectory();
  readonly #children: ChildProcess[] = [];

  constructor() {
    this.root = realpathSync(mkdtempSync(join(tmpdir(), 'hotcell-fleet-')));
    this.git('init', '--quiet', '--initial-branch=main');
    this.git('config', 'user.name', 'Test');
    this.git('config', 'user.email', 'test@example.org');
    this.write('README.md', 'hello\n');
    this.git('add', 'README.md');
    this.git('commit', '--quiet', '-m', 'Say hello');
  }

  git(...args: string[]): string {
    return execFileSync('git', args, { cwd: this.root, encoding: 'utf8' }).trim();
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text);
  }

  /** A branch with one commit of its own on top of `from`: all that is in it is `file`. */
  branch(name: string, from: string, file: string): string {
    const run = (args: string[], input: string): string =>
      execFileSync('git', args, { cwd: this.root, input, encoding: 'utf8' }).trim();
    const blob = run(['hash-object', '-w', '--stdin'], file);
    const tree = run(['mktree'], `100644 blob ${blob}\t${file}\n`);
    const commit = this.git('commit-tree', tree, '-p', from, '-m', `Make ${file}`);
    this.git('update-ref', `refs/heads/${name}`, commit);
    return commit;
  }

  paths(feature = 'shop'): FleetPaths {
    return fleetPaths(this.root, feature);
  }

  state(change: object, feature = 'shop'): StateStore {
    const store = new StateStore(this.paths(feature));
    store.create(FleetState.parse({ feature, started_at: new Date().toISOString(), ...change }));
    return store;
  }

  /** Somebody who holds the feature, as an orchestrator does, and obeys SIGTERM unless `deaf`. */
  async hold(mode: 'container' | 'deaf' = 'container'): Promise<ChildProcess & { readonly pid: number }> {
    const child = this.#spawn([HOLDER, this.root, 'shop', 'hold', mode]);
    await once(child.stdout ?? child, 'data');
    return Object.assign(child, { pid: child.pid ?? 0 });
  }

  environment(): Record<string, string> {
    return {
      PATH: process.env['PATH'] ?? '',
      HOTCELL_STATE_DIR: this.#hotcellState,
      HOTCELL_SESSIONS_DIR: dataDirectoryOf(this.#hotcellState),
      ...COMPILE_CACHE,
    };
  }

  #spawn(argv: readonly string[], stderr: 'inherit' | 'pipe' = 'inherit'): ChildProcess {
    const child = spawn(process.execPath, argv, {
      cwd: this.root,
      env: this.environment(),
      stdio: ['ignore', 'pipe', stderr],
    });
    this.#children.push(child);
    return child;
  }

  /** `mahabharatha …` to its end. */
  run(args: readonly string[], where: { cwd?: string; env?: Readonly<Record<string, string>> } = {}): Run {
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, 'mahabharatha', ...args], {
      cwd: where.cwd ?? this.root,
      encoding: 'utf8',
      env: { ...this.environment(), ...where.env },
      timeout: 60_000,
    });
    return { status, stdout, stderr };
  }

  /** `mahabharatha …` that goes on until it is told to end. */
  watch(args: readonly string[]): { child: ChildProcess; text: () => string; notes: () => string } {
    const child = this.#spawn([MAIN, 'mahabharatha', ...args], 'pipe');
    let text = '';
    let notes = '';
    child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (notes += chunk.toString()));
    return { child, text: () => text, notes: () => notes };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const alive = this.#children.filter(
      ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
    );
    await Promise.all(
      alive.map((child) => {
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        return ended;
      }),
    );
    rmSync(this.root, { recursive: true, force: true });
    removeFolders(this.#hotcellState);
  }
}

/** One task done, one failed with words for the terminal, one that somebody is at. */
export const HALF_DONE = {
  mode: 'container',
  tasks: {
    'SHOP-1': { status: 'complete', level: 1, worker_id: 0, duration_ms: 5000, commit: 'c0ffee' },
    'SHOP-2': { status: 'failed', level: 1, worker_id: 1, retry_count: 4, error: 'tests\u001b[2J failed' },
    'SHOP-3': { status: 'in_progress', level: 1, worker_id: 0 },
  },
  workers: { 0: { worker_id: 0, status: 'running', current_task: 'SHOP-3' } },
  levels: { 1: { status: 'running' } },
};
