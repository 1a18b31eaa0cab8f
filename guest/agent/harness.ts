import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { LONGEST_PAYLOAD } from '../../src/drivers/agent/agent-link.ts';
import { FrameReader } from '../../src/lib/frames.ts';
import { LOUD_PERL } from '../../test/support/loud-perl.ts';
import { Command, type StartOptions } from './command.ts';

const SCRIPT = join(dirname(import.meta.dirname), 'agent.pl');
const isRoot = process.geteuid?.() === 0;

/**
 * SECURITY: the agent ends with kill(-1, 9), which is right for PID 1 of a cell and would end this machine's session
 * anywhere else. It is started through this and in no other way.
 */
const INSIDE = [
  'unshare',
  ...(isRoot ? [] : ['--user', '--map-current-user']),
  '--pid',
  '--fork',
  '--mount-proc',
  '--kill-child',
] as const;

/** Why no agent can be started here, or undefined. */
export function whyNoAgent(): string | undefined {
  const [program, ...flags] = INSIDE;
  const { status, stderr } = spawnSync(program, [...flags, 'perl', '-e', 'exit($$ != 1)'], {
    encoding: 'utf8',
  });
  return status === 0 ? undefined : `no pid namespace with perl in it: ${stderr ?? 'no unshare'}`;
}

/** Starts the agent as a child of a shell; in a namespace all the same, for if it does not refuse. */
export function startBelow(): { status: number | null; stdout: string; stderr: string } {
  const [program, ...flags] = INSIDE;
  const script = 'perl "$0" </dev/null; echo still here';
  return spawnSync(program, [...flags, 'sh', '-c', script, SCRIPT], { encoding: 'utf8' });
}

export interface AgentOptions {
  /** Limits for the agent and all it starts, as prlimit takes them. */
  readonly limits?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the agent with these words as PID 1 of a namespace of its own, as a user that is nobody, like in a cell. */
export function spawnAgent(
  options: AgentOptions,
  words: readonly string[] = [],
): ChildProcessWithoutNullStreams {
  // A different one for each agent, since the kernel counts processes by user.
  const uid = String(0x68000000 + randomInt(0x1000000));
  // An agent that lasts would outlive a test run that is killed. A change of user undoes the wish, so it is said twice.
  const withUs = isRoot ? ['setpriv', '--pdeathsig', 'KILL'] : [];
  const user = isRoot ? [...withUs, '--reuid', uid, '--regid', uid, '--clear-groups'] : [];
  const limits = options.limits === undefined ? [] : ['prlimit', ...options.limits];
  const [program = '', ...args] = [
    ...withUs,
    ...INSIDE,
    ...limits,
    ...user,
    'perl',
    ...LOUD_PERL,
    SCRIPT,
    ...words,
  ];
  return spawn(program, args, {
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp', ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** The real agent with a server that is the test. */
export class Agent {
  readonly closed: Promise<number | null>;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #reader = new FrameReader(LONGEST_PAYLOAD);
  readonly #commands = new Map<number, Command>();
  readonly #ready: Promise<void>;
  #words = '';
  #lastId = 0;

  constructor(options: AgentOptions = {}) {
    this.#child = spawnAgent(options);
    this.closed = once(this.#child, 'close').then(([code]: unknown[]) =>
      typeof code === 'number' ? code : null,
    );
    this.#child.stdin.on('error', () => {});
    this.#child.stderr.on('data', (bytes: Buffer) => (this.#words += bytes.toString()));
    this.#ready = new Promise((resolve) => {
      this.#child.stdout.on('data', (bytes: Buffer) => {
        for (const frame of this.#reader.push(bytes)) {
          if (frame.type === 'R') resolve();
          else this.#commands.get(frame.id)?.receive(frame);
        }
      });
    });
  }

  static async start(options: AgentOptions = {}): Promise<Agent> {
    const agent = new Agent(options);
    await Promise.race([
      agent.#ready,
      agent.closed.then((code) => {
        throw new Error(`the agent ended with ${code}: ${agent.words}`);
      }),
    ]);
    return agent;
  }

  /** What the agent itself has complained about. */
  get words(): string {
    return this.#words;
  }

  send(bytes: Uint8Array): void {
    this.#child.stdin.write(bytes);
  }

  run(argv: readonly string[], options: StartOptions = {}): Command {
    const command = this.plan(options);
    this.send(command.toStart(argv, options));
    return command;
  }

  sh(script: string, options: StartOptions = {}): Command {
    return this.run(['sh', '-c', script], options);
  }

  /** A command that is not started yet. */
  plan(options: Pick<StartOptions, 'grants'> = {}): Command {
    const id = ++this.#lastId;
    const command = new Command(id, (bytes) => this.send(bytes), options.grants ?? true);
    this.#commands.set(id, command);
    return command;
  }

  /** Names of the programs that run in the namespace, without the agent, supervisors and the one that looks. */
  async processes(): Promise<string[]> {
    const look =
      'echo $$; for stat in /proc/[0-9]*/stat; do read -r line <$stat && echo "$line"; done 2>/dev/null';
    const { stdout } = await this.sh(look).result;
    const [self, ...lines] = stdout.toString().trim().split('\n');
    const all = lines.map((line) => {
      const [, pid, name, state, parent] = /^(\d+) \((.*)\) (\S) (\d+)/s.exec(line) ?? [];
      return { pid, name: name ?? '', state, parent };
    });
    const supervisors = all
      .filter(({ parent, name }) => parent === '1' && name === 'perl')
      .map(({ pid }) => pid);
    return all
      .filter(({ pid, state }) => pid !== '1' && pid !== self && state !== 'Z' && !supervisors.includes(pid))
      .map(({ name }) => name)
      .toSorted();
  }

  /** Ends its input; resolves with its exit code when its namespace is gone. */
  end(): Promise<number | null> {
    this.#child.stdin.end();
    return this.closed;
  }
}

/** An agent for one test. Whatever the test does, the agent is gone afterwards and has had nothing to complain about. */
export async function withAgent(
  use: (agent: Agent) => Promise<void>,
  options: AgentOptions = {},
): Promise<void> {
  const agent = await Agent.start(options);
  try {
    await use(agent);
  } finally {
    await agent.end();
  }
  if (agent.words !== '') throw new Error(`the agent says: ${agent.words}`);
}
