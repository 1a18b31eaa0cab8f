import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FleetState, type TaskState } from '../../src/fleet/fleet-state.ts';
import { waitFor } from './leftovers.ts';
import { detachMounts } from './own-disk.ts';
import { makeStateDirectory, removeFolders } from './server.ts';

const AGENT = fileURLToPath(new URL('fleet-agent.mjs', import.meta.url));

/** A step of the scripted agent: its name and arguments, see fleet-agent.mjs. */
export type Step = readonly [string, ...(string | number)[]];

export interface TestTask {
  readonly id: string;
  readonly level: number;
  readonly script: readonly Step[];
  readonly [key: string]: unknown;
}

/** A task that writes `out/<id>.txt`, after what it does besides. */
export function toTask(
  id: string,
  level: number,
  script: readonly Step[] = [],
  more: Readonly<Record<string, unknown>> = {},
): TestTask {
  const file = `out/${id}.txt`;
  return {
    id,
    level,
    title: `Write ${file}`,
    dependencies: [],
    files: { create: [file] },
    verification: { command: `test -s ${file}`, timeout_seconds: 60 },
    script: [...script, ['write', file]],
    ...more,
  };
}

export interface RepositoryOptions {
  readonly tasks: readonly TestTask[];
  readonly feature?: string;
  /** Merged into what tests need: an agent by script, short waits, no network. */
  readonly config?: Readonly<Record<string, object | string>>;
  /** What is committed besides, by path. */
  readonly files?: Readonly<Record<string, string>>;
}

const CONFIG = {
  agent: { command: 'node', args: ['agent.mjs'] },
  workers: {
    backoff_base_seconds: 0.05,
    backoff_max_seconds: 0.2,
    spawn_backoff_base_seconds: 0.05,
    spawn_backoff_max_seconds: 0.2,
  },
  network: { allow: [] },
  // As root all of it is taken from the disk.
  resources: { worktree_disk: '256m' },
  heartbeat: { interval_seconds: 1, stall_timeout_seconds: 60 },
};

/** What the agent writes of itself into `out/<id>.txt`. */
export interface AgentReport {
  readonly task: string;
  readonly attempt: number;
  readonly worker: number;
  readonly branch: string;
  readonly seen: readonly string[];
  readonly dotenv?: string;
  readonly installed?: string;
  readonly hasKey: boolean;
  readonly dropped?: string;
  readonly goesOn: boolean;
  readonly lastError?: string;
  readonly said?: string;
}

/** A git repository with a task graph and a scripted agent, and a state directory of its own for its cells. */
export class FleetRepository implements Disposable {
  readonly root: string;
  readonly feature: string;
  /** Of the drivers. */
  readonly state: string;

  private constructor(root: string, feature: string, state: string) {
    this.root = root;
    this.feature = feature;
    this.state = state;
  }

  static make(options: RepositoryOptions): FleetRepository {
    const { feature = 'demo', files = {} } = options;
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hotcell-fleet-')));
    const repository = new FleetRepository(join(folder, 'repository'), feature, makeStateDirectory());
    mkdirSync(repository.root);
    // As a home of nobody: no settings of whoever runs the tests.
    mkdirSync(repository.home);
    chmodSync(folder, 0o755);
    repository.git('init', '--quiet', '-b', 'main');
    repository.git('config', 'user.name', 'Arjuna');
    repository.git('config', 'user.email', 'arjuna@example.org');
    repository.writeAll({
      '.gitignore': '.env\nmarks/\nnode_modules/\n',
      'agent.mjs': readFileSync(AGENT, 'utf8'),
      // As `plan` leaves it.
      '.gsd/.current-feature': `${feature}\n`,
      '.mahabharatha/config.yaml': JSON.stringify(mergeConfig(options.config ?? {})),
      ...files,
    });
    repository.writeGraph(feature, options.tasks);
    repository.git('add', '-A');
    repository.git('commit', '--quiet', '-m', 'Begin');
    return repository;
  }

  /** Of the same content in another folder, with nothing that runs. */
  copy(): FleetRepository {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hotcell-fleet-')));
    cpSync(dirname(this.root), folder, { recursive: true, preserveTimestamps: true });
    return new FleetRepository(join(folder, 'repository'), this.feature, makeStateDirectory());
  }

  get home(): string {
    return join(dirname(this.root), 'home');
  }

  /** Where what the tests put beside the repository goes. */
  beside(name: string): string {
    return join(dirname(this.root), name);
  }

  writeAll(files: Readonly<Record<string, string>>): void {
    for (const [name, text] of Object.entries(files)) {
      const path = join(this.root, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
  }

  writeConfig(config: Readonly<Record<string, object | string>>): void {
    this.writeAll({ '.mahabharatha/config.yaml': JSON.stringify(mergeConfig(config)) });
  }

  writeGraph(feature: string, tasks: readonly TestTask[]): void {
    const graph = {
      feature,
      tasks: tasks.map(({ script, ...task }) => ({
        ...task,
        description: `script: ${JSON.stringify(script)}`,
      })),
    };
    this.writeAll({ [`.gsd/specs/${feature}/task-graph.json`]: JSON.stringify(graph) });
  }

  git(...args: string[]): string {
    return execFileSync('git', ['-C', this.root, ...args], {
      encoding: 'utf8',
      env: { ...process.env, HOME: this.home, GIT_CONFIG_NOSYSTEM: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  branch(name: string, feature = this.feature): string {
    return `mahabharatha/${feature}/${name}`;
  }

  readState(feature = this.feature): FleetState {
    return FleetState.parse(JSON.parse(readFileSync(this.#stateFile(feature), 'utf8')));
  }

  hasState(feature = this.feature): boolean {
    return existsSync(this.#stateFile(feature));
  }

  #stateFile(feature: string): string {
    return join(this.root, '.mahabharatha/state', `${feature}.json`);
  }

  task(id: string, feature = this.feature): TaskState | undefined {
    return this.hasState(feature) ? this.readState(feature).tasks[id] : undefined;
  }

  events(feature = this.feature): string[] {
    return this.readState(feature).execution_log.map(({ event }) => event);
  }

  /** What tasks wrote, as it is in a commit. */
  report(id: string, commit = this.branch('staging')): AgentReport {
    return JSON.parse(this.git('show', `${commit}:out/${id}.txt`)) as AgentReport;
  }

  /** How many commits of each task there are, wherever a ref leads to; merges are of no task. */
  countCommits(): Record<string, number> {
    const counts: Record<string, number> = {};
    const text = this.git('log', '--all', '--no-merges', '--format=%(trailers:key=Task-ID,valueonly=true)');
    for (const id of text.split('\n').filter((line) => line !== '')) counts[id] = (counts[id] ?? 0) + 1;
    return counts;
  }

  /** Of each commit of the feature branch its task: what was put aside on the way is not there, and merges are of no task. */
  committed(): string[] {
    const format = '--format=%(trailers:key=Task-ID,valueonly=true,separator=)';
    const text = this.git('log', '--no-merges', format, this.branch('staging'), '--not', 'main');
    return text.split('\n').filter(Boolean).toSorted();
  }

  /** Commits that the state names and to which no branch leads: must be none. */
  lostCommits(feature = this.feature): string[] {
    const reachable = new Set(this.git('rev-list', '--branches').split('\n'));
    return Object.entries(this.readState(feature).tasks).flatMap(([id, { commit }]) =>
      typeof commit === 'string' && !reachable.has(commit) ? [`${id} ${commit}`] : [],
    );
  }

  worktrees(feature = this.feature): string[] {
    const folder = join(this.root, '.mahabharatha-worktrees', feature);
    return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  }

  /** The attempts at which a task has told so far, see `wait`. */
  announced(id: string, feature = this.feature): number[] {
    return this.worktrees(feature).flatMap((folder) => {
      const file = join(folder, 'marks', id);
      return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : [];
    });
  }

  async untilAnnounced(id: string, feature = this.feature): Promise<void> {
    await waitFor(`${id} is being worked on`, () => this.announced(id, feature).length > 0);
  }

  /** Lets tasks go on that wait for this mark. */
  mark(name: string, feature = this.feature): void {
    for (const folder of this.worktrees(feature)) {
      const marks = join(folder, 'marks');
      if (!existsSync(marks)) {
        mkdirSync(marks);
        // The agent may be somebody else.
        chmodSync(marks, 0o777);
      }
      writeFileSync(join(marks, name), '');
    }
  }

  [Symbol.dispose](): void {
    detachMounts(this.root);
    removeFolders(this.state);
    rmSync(dirname(this.root), { recursive: true, force: true });
  }
}

function mergeConfig(config: Readonly<Record<string, object | string>>): Record<string, object | string> {
  const merged: Record<string, object | string> = { ...CONFIG };
  for (const [key, value] of Object.entries(config)) {
    const before = merged[key];
    merged[key] =
      typeof before === 'object' && typeof value === 'object' && !Array.isArray(value)
        ? { ...before, ...value }
        : value;
  }
  return merged;
}
