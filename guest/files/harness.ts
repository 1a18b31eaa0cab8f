import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Exec, ExecEvent, ExecRequest, KillCause, Usage } from '../../src/core/exec.ts';
import { EventQueue } from '../../src/lib/event-queue.ts';
import { Workspace } from '../../src/workspace/workspace.ts';
import { LOUD_PERL } from '../../test/support/loud-perl.ts';

const GUEST = dirname(import.meta.dirname);
export const isRoot = process.geteuid?.() === 0;
/** Nobody: without rights, so that modes matter and links of others cannot be followed by privilege. */
export const USER = isRoot ? 65534 : (process.geteuid?.() ?? 0);
const NO_USAGE: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };

/** A process of this machine as a command of a cell, with the same promises about its streams. */
export class ChildExec implements Exec {
  readonly id: number;
  readonly events: AsyncIterable<ExecEvent>;
  readonly ended: Promise<void>;
  readonly pid: number | undefined;
  /** What it has complained about. */
  words = '';
  readonly #child: ChildProcessWithoutNullStreams;

  constructor(id: number, [program, ...args]: readonly [string, ...string[]]) {
    this.id = id;
    this.#child = spawn(program, args, { stdio: 'pipe', env: { PATH: process.env['PATH'] ?? '' } });
    this.pid = this.#child.pid;
    const queue = new EventQueue<ExecEvent>();
    this.events = queue;
    const streams = [this.#child.stdout, this.#child.stderr];
    queue.onFull = () => streams.forEach((stream) => stream.pause());
    queue.onDrained = () => streams.forEach((stream) => stream.resume());
    this.#child.stdin.on('error', () => {});
    this.#child.stdout.on('data', (bytes: Buffer) => queue.push({ type: 'stdout', bytes }));
    this.#child.stderr.on('data', (bytes: Buffer) => {
      this.words += bytes.toString();
      queue.push({ type: 'stderr', bytes });
    });
    this.ended = once(this.#child, 'close').then(([code]: unknown[]) => {
      const outcome = { kind: 'exited', code: typeof code === 'number' ? code : -1 } as const;
      queue.push({ type: 'exit', outcome, usage: NO_USAGE });
      queue.end();
    });
  }

  write(bytes: Uint8Array): void {
    this.#child.stdin.write(bytes);
  }

  closeStdin(): void {
    this.#child.stdin.end();
  }

  kill(_cause?: KillCause): Promise<void> {
    this.#child.kill('SIGKILL');
    return Promise.resolve();
  }

  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  resize(): void {}

  forget(): void {}

  usage(): Promise<Usage> {
    return Promise.resolve(NO_USAGE);
  }
}

/** Words before a command that make it run as the user of a cell. */
export function asUser(): string[] {
  const id = String(USER);
  return isRoot ? ['setpriv', '--reuid', id, '--regid', id, '--clear-groups'] : [];
}

export interface WorkspaceOptions {
  readonly timeoutMs?: number;
  /** A file system of its own to be in; only for root. */
  readonly mount?: { readonly type: 'tmpfs' | 'ramfs'; readonly options?: string };
}

/** A folder with a workspace in it and a place outside, and the real guest over it. */
export class TestWorkspace {
  /** Stands for /workspace. */
  readonly base: string;
  readonly root: string;
  /** What nobody may reach through links. */
  readonly outside: string;
  readonly workspace: Workspace;
  readonly guests: ChildExec[] = [];
  readonly #isMounted: boolean;

  constructor(options: WorkspaceOptions = {}) {
    this.base = mkdtempSync(join(tmpdir(), 'hotcell-files-'));
    const { mount } = options;
    this.#isMounted = mount !== undefined;
    if (mount !== undefined) run('mount', ['-t', mount.type, '-o', mount.options ?? 'rw', 'none', this.base]);
    chmodSync(this.base, 0o755);
    chownSync(this.base, USER, USER);
    this.root = join(this.base, 'project');
    this.outside = join(this.base, 'outside');
    this.workspace = new Workspace({
      exec: (request) => Promise.resolve(this.start(request)),
      root: this.root,
      ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    });
  }

  start({ argv: [program, ...args] }: ExecRequest): ChildExec {
    const filled = args.map((word) => word.replaceAll('{guest}', GUEST));
    const [first = program, ...rest] = [...asUser(), program, ...LOUD_PERL, ...filled];
    const exec = new ChildExec(this.guests.length, [first, ...rest]);
    this.guests.push(exec);
    return exec;
  }

  /** Runs a script in the workspace, as a command of the cell would. */
  async sh(script: string): Promise<string> {
    await this.workspace.read('.', 0);
    const [program, ...args] = [...asUser(), 'sh', '-c', script];
    const child = spawn(program, args, { cwd: this.root, stdio: ['ignore', 'pipe', 'pipe'] });
    let [out, words] = ['', ''];
    child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
    child.stderr.on('data', (bytes: Buffer) => (words += bytes.toString()));
    const [code]: unknown[] = await once(child, 'close');
    if (code !== 0) throw new Error(`${script}: ${words}`);
    return out;
  }

  /** What was staged and not taken away. */
  leftovers(): string[] {
    return readdirSync(this.base).filter((name) => name.startsWith('.hotcell'));
  }

  /** Every path below the root, with a slash behind folders. */
  tree(): string[] {
    const entries = readdirSync(this.root, { recursive: true, withFileTypes: true });
    return entries
      .map(
        (entry) =>
          join(entry.parentPath, entry.name).slice(this.root.length + 1) + (entry.isDirectory() ? '/' : ''),
      )
      .toSorted();
  }

  modeOf(path: string): number {
    return lstatSync(join(this.root, path)).mode & 0o7777;
  }

  async end(): Promise<void> {
    await this.workspace.close();
    await Promise.all(this.guests.map(({ ended }) => ended));
    if (this.#isMounted) run('umount', [this.base]);
    rmSync(this.base, { recursive: true, force: true });
    const words = this.guests.map((guest) => guest.words).join('');
    if (words !== '') throw new Error(`the guest says: ${words}`);
  }
}

function run(program: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program}: ${stderr}`);
}

export async function withWorkspace(
  use: (test: TestWorkspace) => Promise<void>,
  options: WorkspaceOptions = {},
): Promise<void> {
  const test = new TestWorkspace(options);
  try {
    await use(test);
  } finally {
    await test.end();
  }
}

/**
 * File systems with times as fine as they come, and, for root, one whose times move in steps of milliseconds, as they did
 * everywhere until lately.
 */
export const CLOCKS: readonly (readonly [string, WorkspaceOptions])[] = [
  ['times of this machine', {}],
  ...(isRoot ? [['coarse times', { mount: { type: 'ramfs' } }] as const] : []),
];

export function file(path: string, content: string | Uint8Array, mode?: number) {
  return { path, content: Buffer.from(content), ...(mode === undefined ? {} : { mode }) };
}
