import { spawn } from 'node:child_process';
import { chmod, lstat, mkdir, mkdtemp, readFile, readdir, readlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { tmpdirOnTmpfs } from '../../../test/support/server.ts';
import { HotcellError } from '../../core/errors.ts';
import { featureBranch, workerBranch } from '../names.ts';
import { findAuthor } from './author.ts';
import { BaseStore } from './base-store.ts';
import { HostGit } from './host-git.ts';
import { LinkedGit } from './linked-git.ts';
import type { RunInCell } from './cell-git.ts';
import { runProgram } from './run-program.ts';
import { SealedGit } from './sealed-git.ts';
import { hideFolder } from './worktrees.ts';

const PATH = '/usr/local/bin:/usr/bin:/bin';
const FEATURE = 'shop';

/** For tests: a repository of a user with a home of its own, all in a temporary folder. */
export class ScratchRepository implements AsyncDisposable {
  readonly folder: string;
  readonly root: string;
  readonly home: string;
  readonly environment: Readonly<Record<string, string>>;

  /** One that was made before. `path` is where programs are found. */
  constructor(folder: string, path = PATH) {
    this.folder = folder;
    this.root = join(folder, 'repo');
    this.home = join(folder, 'home');
    this.environment = { PATH: path, HOME: this.home };
  }

  static async make(options: { readonly init?: readonly string[] } = {}): Promise<ScratchRepository> {
    const made = new ScratchRepository(await mkdtemp(join(tmpdirOnTmpfs(), 'hotcell-fleet-git-')));
    await chmod(made.folder, 0o755);
    await mkdir(made.home);
    await mkdir(made.root);
    await made.user(['init', '--quiet', '-b', 'main', ...(options.init ?? [])]);
    await made.user(['config', 'user.name', 'Ada']);
    await made.user(['config', 'user.email', 'ada@example.org']);
    await made.write({ 'a.txt': 'one\n', 'src/b.txt': 'two\n', '.gitignore': 'node_modules\n.env\n' });
    await made.save('first');
    for (const folder of ['.mahabharatha', '.mahabharatha-worktrees'])
      await hideFolder(join(made.root, folder));
    return made;
  }

  open(): Promise<HostGit> {
    return HostGit.open(this.root, this.environment);
  }

  /** As the user would, in any folder. */
  async user(args: readonly string[], cwd = this.root): Promise<string> {
    const { code, stdout, stderr } = await runProgram(['git', ...args], {
      cwd,
      env: this.environment,
      limitBytes: 64 * 1024 ** 2,
      timeoutMs: 60_000,
    });
    if (code !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
    return stdout.toString().replace(/\n$/, '');
  }

  write(files: Readonly<Record<string, string>>): Promise<void> {
    return writeFiles(this.root, files);
  }

  async save(message: string): Promise<string> {
    await this.user(['add', '-A']);
    await this.user(['commit', '--quiet', '-m', message]);
    return this.user(['rev-parse', 'HEAD']);
  }

  /** Everything of the user's git folder that must never change because of us. */
  async untouchables(): Promise<Record<string, string>> {
    const git = join(this.root, '.git');
    const worktrees = await readdir(join(git, 'worktrees')).catch(() => []);
    return {
      ...(await readTree(join(git, 'hooks'))),
      ...(await readTree(join(git, 'info'))),
      config: await readFile(join(git, 'config'), 'latin1'),
      HEAD: await readFile(join(git, 'HEAD'), 'latin1'),
      ...(await readTree(this.home)),
      ...Object.fromEntries(
        await Promise.all(
          worktrees.map(async (id) => {
            const pointer = await readFile(join(git, 'worktrees', id, 'gitdir'), 'latin1');
            return [id, `${pointer}${await readFile(pointer.trim(), 'latin1').catch(() => 'none')}`] as const;
          }),
        ),
      ),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const options = { cwd: '/', env: { PATH }, limitBytes: 1024 ** 2, timeoutMs: 60_000 };
    await runProgram(['chmod', '-R', 'u+rwX', this.folder], options);
    await runProgram(['rm', '-rf', '--', this.folder], options);
  }
}

/** A worker in a folder that stands for its cell: programs of the cell run there, with its private git folder. */
export interface ScratchWorker<Git> {
  readonly git: HostGit;
  readonly place: Git;
  readonly worktree: string;
  readonly run: RunInCell;
  /** As the agent would, in the worktree. */
  agent(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<string>;
}

export interface ScratchSealed extends ScratchWorker<SealedGit> {
  readonly base: BaseStore;
  /** The private git folder. */
  readonly inner: string;
}

export async function sealedWorker(
  repository: ScratchRepository,
  options: { readonly worker?: number; readonly owner?: { uid: number; gid: number } } = {},
): Promise<ScratchSealed> {
  const { worker = 0, owner } = options;
  const git = await repository.open();
  const cells = join(repository.root, '.mahabharatha/cells', FEATURE);
  const base = new BaseStore(git, join(cells, 'base.git'));
  const folder = join(cells, `worker-${worker}`);
  const inner = join(folder, 'git');
  const worktree = worktreeOf(repository, worker);
  const place = new SealedGit({
    git,
    base,
    feature: FEATURE,
    worker,
    branch: workerBranch(FEATURE, worker),
    worktree,
    folder,
    start: await startOf(repository),
    author: await findAuthor(git, worker),
    inside: { workspace: worktree, git: inner, objects: base.objects },
  });
  const home = join(repository.folder, `cell-${worker}`);
  await mkdir(home, { recursive: true });
  const run = makeRun({ cwd: worktree, env: { ...repository.environment, HOME: home }, owner });
  return {
    git,
    base,
    place,
    worktree,
    run,
    inner,
    agent: makeAgent(run, { GIT_DIR: inner, GIT_WORK_TREE: worktree }),
  };
}

export async function linkedWorker(
  repository: ScratchRepository,
  worker = 0,
): Promise<ScratchWorker<LinkedGit>> {
  const git = await repository.open();
  const worktree = worktreeOf(repository, worker);
  const place = new LinkedGit({
    git,
    feature: FEATURE,
    worker,
    branch: workerBranch(FEATURE, worker),
    worktree,
    start: await startOf(repository),
    author: await findAuthor(git, worker),
  });
  const run = makeRun({ cwd: worktree, env: repository.environment });
  return { git, place, worktree, run, agent: makeAgent(run, {}) };
}

export async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

/** Content of files, targets of links, by path; links are not followed. */
export async function readTree(folder: string): Promise<Record<string, string>> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const entries = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      const entry = await lstat(path);
      if (entry.isSymbolicLink()) return [[name, `-> ${await readlink(path)}`] as const];
      return entry.isFile() ? [[name, await readFile(path, 'latin1')] as const] : [];
    }),
  );
  return Object.fromEntries(entries.flat());
}

function worktreeOf(repository: ScratchRepository, worker: number): string {
  return join(repository.root, '.mahabharatha-worktrees', FEATURE, `worker-${worker}`);
}

/** The head of the feature branch, which is made where there is none. */
async function startOf(repository: ScratchRepository): Promise<string> {
  const ref = `refs/heads/${featureBranch(FEATURE)}`;
  const there = await repository.user(['for-each-ref', '--format=%(objectname)', ref]);
  if (there !== '') return there;
  await repository.user(['update-ref', ref, 'HEAD']);
  return repository.user(['rev-parse', 'HEAD']);
}

function makeAgent(
  run: RunInCell,
  place: Readonly<Record<string, string>>,
): (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<string> {
  return async (args, env) => {
    const { code, stdout, stderr } = await run(['git', ...args], { env: { ...place, ...env } });
    if (code !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
    return Buffer.from(stdout).toString().replace(/\n$/, '');
  };
}

interface Stand {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined;
}

function makeRun({ cwd, env, owner }: Stand): RunInCell {
  return ([program, ...args], { input, env: more, limitBytes = 64 * 1024 ** 2, onStdout, timeoutMs } = {}) =>
    new Promise((resolve, reject) => {
      const bounds = timeoutMs === undefined ? {} : { timeout: timeoutMs, killSignal: 'SIGKILL' as const };
      const child = spawn(program, args, {
        cwd,
        env: { ...env, ...more },
        ...owner,
        ...bounds,
        stdio: 'pipe',
      });
      const pieces: Uint8Array[] = [];
      let stderr = '';
      let length = 0;
      child.stdin.on('error', () => {});
      child.stdin.end(input ?? '');
      child.stdout.on('data', (bytes: Buffer) => {
        length += bytes.length;
        if (length > limitBytes) child.kill('SIGKILL');
        else if (onStdout === undefined) pieces.push(bytes);
        else onStdout(bytes);
      });
      child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
      child.on('error', reject);
      child.on('close', (code) => {
        if (length > limitBytes) reject(new HotcellError('FILE_TOO_LARGE', `more than ${limitBytes} bytes`));
        else resolve({ code: code ?? 137, stdout: Buffer.concat(pieces), stderr });
      });
    });
}
