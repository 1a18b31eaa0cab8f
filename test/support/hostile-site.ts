import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { FleetState } from '../../src/fleet/fleet-state.ts';
import { fleetPaths, type FleetPaths } from '../../src/fleet/names.ts';
import { fingerprint, listTree, readIfThere } from './hostile-files.ts';
import { HostileFleet } from './hostile-fleet.ts';
import { armHost, hideSecrets } from './hostile-host.ts';
import type { Plan } from './hostile-look-attack.ts';
import { findTraces } from './leftovers.ts';
import { COMPILE_CACHE, MAIN } from './command.ts';
import { detachMounts } from './own-disk.ts';
import { makeStateDirectory, removeFolders } from './server.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const FEATURE = 'demo';

export interface HostileTask {
  readonly id: string;
  readonly level?: number;
  readonly verification?: string;
}

export interface SiteWish {
  readonly driver: 'oci' | 'docker';
  readonly tasks: readonly HostileTask[];
  /** Of `.mahabharatha/config.yaml`, beside what all of these tests need. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Of hotcell, such as docker.host. */
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly plan?: Partial<Plan>;
  readonly env?: Readonly<Record<string, string>>;
}

/** A home folder and a repository full of secrets, and a hostile agent in it that a real fleet is to run. */
export class HostileSite implements AsyncDisposable {
  /** Not in /tmp, which is theirs in cells, so that nobody can make it there. */
  readonly folder = realpathSync(mkdtempSync('/var/tmp/hotcell-hostile-'));
  readonly home = join(this.folder, 'home');
  readonly root = join(this.folder, 'repository');
  readonly canary = join(this.folder, 'canary');
  readonly stateDirectory = makeStateDirectory();
  readonly prefix = `mk${randomBytes(8).toString('hex')}`;
  readonly #wish: SiteWish;
  #fleet: HostileFleet | undefined;

  constructor(wish: SiteWish) {
    this.#wish = wish;
    chmodSync(this.folder, 0o755);
    for (const path of [this.home, this.root, this.canary]) mkdirSync(path);
    chmodSync(this.canary, 0o700);
    this.#layHome();
    this.#makeRepository();
  }

  get paths(): FleetPaths {
    return fleetPaths(this.root, FEATURE);
  }

  /** A new one, which is told from the others by its end. */
  secret(what: string): string {
    return `${this.prefix}-${what}-${randomBytes(4).toString('hex')}`;
  }

  git(...args: string[]): string {
    const quiet = ['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false'];
    return execFileSync('git', [...quiet, ...args], {
      cwd: this.root,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    }).trim();
  }

  /** Open to everybody, so that only walls keep anybody out. */
  #layHome(): void {
    const files = [
      '.ssh/id_ed25519', '.aws/credentials', '.config/gh/hosts.yml', '.config/gcloud/token', '.claude/.credentials.json',
      '.claude.json', '.netrc', '.docker/config.json', '.kube/config', '.gnupg/key', '.bash_history',
    ]; // prettier-ignore
    for (const file of files)
      this.write(join(this.home, file), JSON.stringify({ secret: this.secret('home') }));
    this.write(join(this.home, '.npmrc'), `//registry.invalid/:_authToken=${this.secret('npm')}\n`);
    this.write(
      join(this.home, '.gitconfig'),
      `[user]\n\tname = U\n\temail = u@example.org\n[secret]\n\tx = ${this.secret('gitconfig')}\n`,
    );
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { mode: 0o644 });
  }

  #makeRepository(): void {
    const at = (path: string): string => join(this.root, path);
    this.git('init', '--quiet', '--initial-branch=main');
    this.git('config', 'user.name', 'Test');
    this.git('config', 'user.email', 'test@example.org');
    for (const file of globSync('hostile-{agent,search,*-attack}.ts', { cwd: HERE }))
      copyFileSync(join(HERE, file), at(basename(file)));
    this.write(at('.gitignore'), '.env\n.state/\nconf/*.env\n*.secret\n/.mahabharatha/\n');
    this.write(at('conf/readme'), 'settings\n');
    this.write(at('shared.evil'), 'shared\n');
    this.write(at('.gitattributes'), '*.evil filter=evil diff=evil\n');
    this.write(at('hostile.json'), JSON.stringify(this.#plan()));
    this.write(at('.gsd/specs/demo/task-graph.json'), JSON.stringify(this.#graph()));
    this.git('add', '-A');
    this.git('commit', '--quiet', '-m', 'base');
    hideSecrets(this);
    this.write(at('.env'), 'PLAIN=1\n');
    this.write(at('conf/local.env'), 'PLAIN=2\n');
    this.write(at('.mahabharatha/config.yaml'), stringify(this.#config()));
    this.write(join(this.folder, 'hotcell.yaml'), stringify(this.#wish.settings ?? {}));
    armHost(this);
  }

  #plan(): Plan {
    const git = join(this.root, '.git');
    return {
      prefix: [this.prefix.slice(0, 6), this.prefix.slice(6)],
      secrets: [
        this.folder, this.home, join(this.home, '.ssh'), join(this.home, '.ssh/id_ed25519'), join(this.home, '.aws/credentials'),
        join(this.home, '.config'), join(this.home, '.claude'), join(this.home, '.npmrc'), this.root, git, join(git, 'config'),
        join(git, 'hooks'), join(git, 'logs/HEAD'), join(this.root, 'notes.secret'), this.paths.home, this.paths.state,
        this.paths.config, this.paths.workerLogs, this.paths.featureLogs, this.paths.worktrees, this.paths.cells, this.stateDirectory, '/etc/shadow', '/var/run/docker.sock', '/run/systemd', '/etc/hotcell',
      ], // prettier-ignore
      precious: [
        this.root, git, join(git, 'config'), join(git, 'hooks'), join(git, 'objects'), join(git, 'worktrees'),
        join(this.root, 'README.md'), this.paths.state, this.paths.stateFolder, this.paths.worktrees, this.paths.cells, this.home,
      ], // prettier-ignore
      canary: this.canary,
      ports: [],
      sockets: [],
      hosts: [],
      ...this.#wish.plan,
    };
  }

  #graph(): object {
    const tasks = this.#wish.tasks.map(({ id, level = 1, verification = 'true' }, index) => ({
      id,
      title: `do ${id}`,
      level,
      description: 'whatever you like',
      files: { create: [`out/${id}.json`] },
      verification: { command: verification, timeout_seconds: 120 },
      // The first ones first.
      estimate_minutes: this.#wish.tasks.length - index,
    }));
    return { feature: FEATURE, tasks };
  }

  #config(): object {
    return {
      agent: { command: 'node', args: ['--disable-warning=ExperimentalWarning', 'hostile-agent.ts'] },
      workers: {
        backoff_strategy: 'fixed',
        backoff_base_seconds: 0.05,
        spawn_backoff_base_seconds: 0.1,
        retry_attempts: 8,
        timeout_minutes: 3,
      },
      network: { allow: [] },
      heartbeat: { interval_seconds: 1, stall_timeout_seconds: 20 },
      worktree: { copy: ['.env', 'conf/*.env'], setup: 'auto' },
      ...this.#wish.config,
      // As root all of it is taken from the disk.
      resources: { worktree_disk: '2g', ...(this.#wish.config['resources'] as object | undefined) },
    };
  }

  /** `kurukshetra`, or `resume`. */
  start(
    command: 'kurukshetra' | 'resume',
    workers: number,
    env: Readonly<Record<string, string>> = {},
  ): HostileFleet {
    const args = [
      'mahabharatha',
      command,
      '--feature',
      FEATURE,
      '--workers',
      String(workers),
      '--mode',
      'container',
    ];
    const child = spawn(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        MAIN,
        ...args,
        '--driver',
        this.#wish.driver,
        '--config',
        join(this.folder, 'hotcell.yaml'),
        '--verbose',
      ],
      {
        cwd: this.root,
        env: {
          PATH: process.env['PATH'] ?? '',
          HOME: this.home,
          HOTCELL_STATE_DIR: this.stateDirectory,
          ...COMPILE_CACHE,
          ...this.#wish.env,
          ...env,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    return (this.#fleet = new HostileFleet(child));
  }

  readState(): FleetState | undefined {
    return existsSync(this.paths.state)
      ? FleetState.parse(JSON.parse(readFileSync(this.paths.state, 'utf8')))
      : undefined;
  }

  statusOf(task: string): string | undefined {
    return this.readState()?.tasks[task]?.status;
  }

  /** What the agent has written in a task, from the branch of the feature. */
  report(task: string): unknown {
    return JSON.parse(this.git('show', `mahabharatha/${FEATURE}/staging:out/${task}.json`));
  }

  /** Says to all agents that wait for it that it is enough. */
  go(): void {
    for (const folder of globSync(join(this.paths.worktrees, 'worker-*/.state')))
      writeFileSync(join(folder, 'go'), '');
  }

  /** What must be the same after as before: pointers, settings, hooks, the user's own files and branches. */
  snapshot(): Record<string, string> {
    const git = join(this.root, '.git');
    const files = [
      ...listTree(join(git, 'hooks')),
      ...[
        'config',
        'HEAD',
        'description',
        'info/exclude',
        'logs/HEAD',
        'logs/refs/heads/main',
        'logs/refs/stash',
      ].map((name) => join(git, name)),
      ...listTree(this.home),
      ...readdirSync(this.root)
        .filter((name) => !name.startsWith('.mahabharatha') && name !== '.git')
        .flatMap((name) => listTree(join(this.root, name))),
      this.paths.config,
    ];
    return Object.fromEntries([
      ...files.map((path) => [path, fingerprint(path)] as const),
      [
        'refs',
        this.git(
          'for-each-ref',
          'refs/heads/main',
          'refs/heads/private',
          'refs/tags',
          'refs/stash',
          'refs/remotes',
        ),
      ],
      ['worktrees', this.git('worktree', 'list', '--porcelain')],
      ['canary', [fingerprint(this.canary), ...readdirSync(this.canary)].join(' ')],
    ]);
  }

  /** Files below these folders with this text in them. */
  findText(text: string, ...folders: readonly string[]): string[] {
    return folders
      .flatMap((folder) => listTree(folder))
      .filter((path) => lstatSync(path).isFile() && readFileSync(path).includes(text));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#fleet?.end('SIGKILL');
    detachMounts(this.folder);
    execFileSync('chmod', ['-R', 'u+rwX', this.folder]);
    // Deeper than paths can be, so not by paths.
    execFileSync('rm', ['-rf', this.folder]);
    removeFolders(this.stateDirectory);
  }

  /** Command lines of processes that see folders of the site as their own: those in cells. */
  inCells(): string[] {
    // Everybody here sees what is mounted in the site, also helpers with a table of mounts of their own.
    const here = readlinkSync('/proc/self/ns/pid');
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && ![here, undefined].includes(namespaceOf(name)))
      .filter((pid) => readIfThere(`/proc/${pid}/mountinfo`).includes(this.folder))
      .map((pid) => readIfThere(`/proc/${pid}/cmdline`).replaceAll('\0', ' '));
  }

  /** What of the fleet is still on this machine. */
  remains(): string[] {
    const { processes, cgroups, mounts } = findTraces(this.stateDirectory, [this.folder]);
    return [...this.inCells(), ...processes, ...cgroups, ...mounts];
  }
}

function namespaceOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}
