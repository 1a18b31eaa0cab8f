import { spawnSync } from 'node:child_process';
import { lstatSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** What the test tells the agent, as `hostile.json`. */
export interface Plan {
  /** All secrets of the test begin with it. In two parts, so that a search does not find itself. */
  readonly prefix: readonly [string, string];
  /** Paths of the host: secrets, and folders with some. */
  readonly secrets: readonly string[];
  /** Paths of the host that nobody may change. */
  readonly precious: readonly string[];
  /** A folder of the host: whatever is in it afterwards was made by a program that ran on the host. */
  readonly canary: string;
  /** Ports and sockets of the host. */
  readonly ports: readonly number[];
  readonly sockets: readonly string[];
  readonly hosts: readonly string[];
}

export interface Looked {
  /** Files and pseudo files with a secret in them. */
  readonly found: readonly string[];
  /** Secrets of the host that are there. */
  readonly readable: readonly string[];
  readonly commands: readonly string[];
  readonly mounts: readonly string[];
  readonly walked: number;
  readonly objects: number;
  readonly folders: Readonly<Record<string, readonly string[]>>;
  readonly status: string;
}

export function readSecret({ prefix }: Plan): string {
  return prefix.join('');
}

/** Searches all that can be seen for secrets, but for these folders. */
export function lookAround(plan: Plan, but: readonly string[] = []): Looked {
  const needle = Buffer.from(readSecret(plan));
  const walk = new Walk(needle, but);
  walk.enter('/');
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  for (const pid of processes) {
    for (const file of ['environ', 'cmdline', 'mountinfo', 'stat', 'maps', 'comm', 'cgroup'])
      walk.read(`/proc/${pid}/${file}`);
    for (const link of ['root', 'cwd']) walk.enter(`/proc/${pid}/${link}/`);
    for (const fd of list(`/proc/${pid}/fd`)) walk.enter(`/proc/${pid}/fd/${fd}/`);
  }
  const outputs = gitOutputs();
  return {
    found: [...walk.found, ...outputs.filter((bytes) => bytes.includes(needle)).map(() => 'git')],
    readable: plan.secrets.filter((path) => canSee(path)),
    commands: processes.map((pid) => read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')),
    mounts: read('/proc/self/mountinfo').trim().split('\n'),
    walked: walk.count,
    objects: outputs.reduce((sum, bytes) => sum + bytes.length, 0),
    folders: Object.fromEntries(
      ['/root', '/home', '/workspace', '/git', '/repo'].map((at) => [at, list(at)]),
    ),
    status: read('/proc/self/status'),
  };
}

/** Everything that git can be made to show, reachable or not. */
function gitOutputs(): Buffer[] {
  const calls = [
    ['cat-file', '--batch-all-objects', '--batch', '--unordered'],
    ['log', '--all', '--reflog', '-p'],
    ['for-each-ref'],
    ['stash', 'list', '-p'],
    ['reflog', '--all'],
    ['fsck', '--unreachable', '--no-progress'],
    ['config', '--list', '--show-origin'],
    ['worktree', 'list', '--porcelain'],
    ['remote', '-v'],
  ];
  return calls.map((args) => spawnSync('git', args, { maxBuffer: 2 ** 28 }).stdout);
}

/** Only of what is new: the programs of the system are older than any secret of a test. */
const NEW_MS = 3_600_000;
const MOST_BYTES = 8 * 1024 * 1024;

class Walk {
  readonly found: string[] = [];
  count = 0;
  readonly #needle: Buffer;
  readonly #seen: Set<string>;
  /** What is in them has no end; the test looks at some of it by name. */
  readonly #pseudo = new Set(
    ['/proc', '/sys'].map((path) => lstatSync(path, { throwIfNoEntry: false })?.dev),
  );

  constructor(needle: Buffer, but: readonly string[]) {
    this.#needle = needle;
    // Not by their paths: every process has a `root` that leads there, too.
    this.#seen = new Set(but.map((path) => toIdentity(lstatSync(path))));
  }

  enter(folder: string): void {
    for (const name of list(folder)) this.look(join(folder, name));
  }

  look(path: string): void {
    try {
      const info = lstatSync(path);
      const { dev, size, ctimeMs } = info;
      const identity = toIdentity(info);
      if (this.#pseudo.has(dev) || this.#seen.has(identity)) return;
      this.#seen.add(identity);
      this.count++;
      if (Buffer.from(path).includes(this.#needle)) this.found.push(path);
      if (info.isDirectory()) this.enter(path);
      else if (info.isFile() && size <= MOST_BYTES && Date.now() - ctimeMs < NEW_MS) this.read(path);
    } catch {
      // Not for us.
    }
  }

  read(path: string): void {
    if (Buffer.from(read(path), 'latin1').includes(this.#needle)) this.found.push(path);
  }
}

function toIdentity({ dev, ino }: { readonly dev: number; readonly ino: number }): string {
  return `${dev} ${ino}`;
}

/** Also of files that say that they are empty. */
function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function canSee(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EISDIR' && list(path).length > 0;
  }
}
