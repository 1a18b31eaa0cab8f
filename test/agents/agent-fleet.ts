import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parse, stringify } from 'yaml';
import type { TaskState } from '../../src/fleet/fleet-state.ts';
import { FleetCommand, type FleetEnd } from '../support/fleet-command.ts';
import { setGitTrap, type GitMoment, type GitTrap } from '../support/fleet-git-trap.ts';
import { describeFleet } from '../support/fleet-remains.ts';
import { FleetRepository, type TestTask } from '../support/fleet-repository.ts';
import type { AgentWay, CommandSetup } from './agent-ways.ts';
import type { MessagesApi } from './messages-api.ts';

type Config = Readonly<Record<string, object | string>>;

/** Looks like a real one, and opens nothing. */
export const API_KEY = 'sk-ant-api03-hotcell-test-key-of-nobody';

/** The agent that people have who change nothing. */
const AGENT = { command: 'claude', args: ['--print', '--dangerously-skip-permissions'] };
/** What would otherwise be waited for: nobody is busy here. */
const SHORT_WAITS = {
  backoff_base_seconds: 0.05,
  backoff_max_seconds: 0.2,
  spawn_backoff_base_seconds: 0.05,
  spawn_backoff_max_seconds: 0.2,
};

export interface AgentFleetOptions {
  /** Undefined: a repository that knows nothing of fleets yet. */
  readonly tasks?: readonly TestTask[];
  readonly config?: Config;
  /** Of the user; undefined: not set, whatever the tests set by themselves. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** A repository, an API by script, and commands of a user who has the real agent. */
export class AgentFleet implements AsyncDisposable {
  readonly way: AgentWay;
  readonly repository: FleetRepository;
  readonly api: MessagesApi;
  readonly #setup: CommandSetup;
  readonly #env: AgentFleetOptions['env'];
  readonly #commands: FleetCommand[] = [];
  #trap: GitTrap | undefined;

  private constructor(
    way: AgentWay,
    repository: FleetRepository,
    api: MessagesApi,
    options: AgentFleetOptions,
  ) {
    this.way = way;
    this.repository = repository;
    this.api = api;
    this.#env = options.env;
    this.#setup = way.furnish(repository, api);
  }

  static async open(way: AgentWay, options: AgentFleetOptions = {}): Promise<AgentFleet> {
    const { tasks, config = {} } = options;
    await using attempt = new AsyncDisposableStack();
    const api = attempt.use(await way.startApi());
    const repository = attempt.use(FleetRepository.make({ tasks: tasks ?? [], config: { agent: AGENT } }));
    if (tasks === undefined) forgetFleets(repository);
    const fleet = new AgentFleet(way, repository, api, options);
    if (tasks !== undefined) fleet.configure(config);
    attempt.move();
    return fleet;
  }

  /** Changes what `.mahabharatha/config.yaml` says: what this way and tests need, and what this test wants. */
  configure(change: Config = {}): void {
    const file = join(this.repository.root, '.mahabharatha/config.yaml');
    let config = parse(readFileSync(file, 'utf8')) as Config;
    for (const more of [{ workers: SHORT_WAITS }, this.#setup.config, change]) config = merge(config, more);
    writeFileSync(file, stringify(config));
  }

  /** The next command that works is killed by it, at this moment. */
  trapGit(moment: GitMoment): GitTrap {
    return (this.#trap = setGitTrap(this.repository, moment));
  }

  /** `mahabharatha …`; `inPlace` for commands that run agents. */
  start(...args: readonly string[]): FleetCommand {
    const { env, program } = this.#setup;
    const path = env['PATH'] ?? process.env['PATH'] ?? '';
    const all: Record<string, string | undefined> = {
      ANTHROPIC_API_KEY: API_KEY,
      ANTHROPIC_BASE_URL: this.api.url,
      CLAUDE_CODE_MAX_RETRIES: '1',
      // It takes a second, and would leave this machine where there are no walls.
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      ...env,
      ...(this.#trap === undefined ? {} : { PATH: `${this.#trap.folder}:${path}` }),
      ...this.#env,
    };
    const set = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const command = FleetCommand.start(this.repository, args, {
      env: Object.fromEntries(set),
      ...(program === undefined ? {} : { program }),
    });
    this.#commands.push(command);
    return command;
  }

  /** `mahabharatha …` to its end. */
  command(...args: readonly string[]): Promise<FleetEnd> {
    return this.start(...args).ended;
  }

  /** The same, for commands that run agents: in the way that is tested. */
  inPlace([command = '', ...args]: readonly string[]): FleetCommand {
    return this.start(command, ...this.way.args, ...args);
  }

  /** `run` to its end. */
  run(...args: readonly string[]): Promise<FleetEnd> {
    return this.inPlace(['run', '--workers', '1', ...args]).ended;
  }

  task(id: string): TaskState | undefined {
    return this.repository.task(id);
  }

  /** What must be true in the end, whatever was tested: nothing is left, and the API was asked what was expected and no more. */
  async faults(): Promise<string[]> {
    const left = await describeFleet(this.repository, this.#commands, this.way.engine);
    return [...this.api.problems, ...this.api.unasked(), ...left];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using stack = new AsyncDisposableStack();
    stack.use(this.repository);
    stack.use(this.api);
    for (const command of this.#commands) stack.use(command);
    // Also where a test says nothing of it: its agents were not answered as it thinks they were.
    const { problems } = this.api;
    if (problems.length > 0) throw new Error(`the agents asked for more:\n${problems.join('\n')}`);
  }
}

function forgetFleets(repository: FleetRepository): void {
  for (const name of ['.mahabharatha', '.gsd', 'agent.mjs'])
    rmSync(join(repository.root, name), { recursive: true });
  repository.git('add', '-A');
  repository.git('commit', '--quiet', '--amend', '-m', 'Begin');
}

function merge(config: Config, change: Config): Config {
  const merged: Record<string, object | string> = { ...config };
  for (const [key, value] of Object.entries(change)) {
    const before = merged[key];
    const both = [before, value].every((one) => typeof one === 'object' && !Array.isArray(one));
    merged[key] = both ? Object.assign({}, before, value) : value;
  }
  return merged;
}

/** The command did what it was told; its words are shown otherwise. */
export function expectDone({ code, stdout, stderr }: FleetEnd): void {
  expect({ code, words: code === 0 ? '' : `${stdout}\n${stderr}`.slice(-3000) }).toEqual({
    code: 0,
    words: '',
  });
}
