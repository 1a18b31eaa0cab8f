import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { FrameReader, encodeFrame, type Frame } from '../../src/drivers/agent/frames.ts';
import { parseFigures } from '../../src/drivers/agent/report.ts';

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

export interface StartOptions {
  readonly alone?: boolean;
  readonly cwd?: string;
  readonly touch?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Grants as much output as comes; true unless said otherwise. */
  readonly grants?: boolean;
}

/** The real agent as PID 1 of a namespace of its own, as a user that is nobody, like in a cell. */
export class Agent {
  readonly closed: Promise<number | null>;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #reader = new FrameReader();
  readonly #commands = new Map<number, Command>();
  readonly #ready: Promise<void>;
  #words = '';
  #lastId = 0;

  constructor(options: AgentOptions = {}) {
    // A different one for each agent, since the kernel counts processes by user.
    const uid = String(0x68000000 + randomInt(0x1000000));
    const [program, ...flags] = INSIDE;
    const user = isRoot ? ['setpriv', '--reuid', uid, '--regid', uid, '--clear-groups'] : [];
    const limits = options.limits === undefined ? [] : ['prlimit', ...options.limits];
    this.#child = spawn(program, [...flags, ...limits, ...user, 'perl', SCRIPT], {
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp', ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
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

export interface Ending {
  /** `X`, `F` or `L`, as the agent said it. */
  readonly type: string;
  readonly words: string;
  readonly exitCode: number;
  readonly signal: number;
  readonly figures: Readonly<Record<string, number>>;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/** One command, as raw as the frames are. */
export class Command {
  readonly result: Promise<Ending>;
  readonly #id: number;
  readonly #send: (bytes: Uint8Array) => void;
  readonly #grants: boolean;
  readonly #out: Buffer[] = [];
  readonly #err: Buffer[] = [];
  readonly #answers: ((figures: Record<string, number>) => void)[] = [];
  #finish: (ending: Ending) => void = () => {};
  #heard: () => void = () => {};
  isEnded = false;

  constructor(id: number, send: (bytes: Uint8Array) => void, grants: boolean) {
    this.#id = id;
    this.#send = send;
    this.#grants = grants;
    this.result = new Promise((resolve) => (this.#finish = resolve));
  }

  toStart(argv: readonly string[], options: StartOptions = {}): Buffer {
    const env = Object.entries(options.env ?? {}).map(([name, value]) => `${name}=${value}`);
    const head = [options.alone === true ? '1' : '0', options.cwd ?? '/tmp', options.touch ?? ''];
    return encodeFrame(
      'S',
      this.#id,
      Buffer.from([...head, String(argv.length), ...argv, ...env].join('\0')),
    );
  }

  toInput(bytes: Uint8Array): Buffer {
    return encodeFrame('I', this.#id, bytes);
  }

  toEnd(): Buffer {
    return encodeFrame('E', this.#id);
  }

  toKill(): Buffer {
    return encodeFrame('K', this.#id);
  }

  write(bytes: Uint8Array | string): this {
    this.#send(this.toInput(Buffer.from(bytes)));
    return this;
  }

  closeStdin(): this {
    this.#send(this.toEnd());
    return this;
  }

  kill(): this {
    this.#send(this.toKill());
    return this;
  }

  grant(bytes: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(bytes);
    this.#send(encodeFrame('C', this.#id, payload));
  }

  usage(): Promise<Readonly<Record<string, number>>> {
    this.#send(encodeFrame('U', this.#id));
    return new Promise((resolve) => this.#answers.push(resolve));
  }

  get stdout(): Buffer {
    return Buffer.concat(this.#out);
  }

  get received(): number {
    return [...this.#out, ...this.#err].reduce((sum, { length }) => sum + length, 0);
  }

  /** Waits until what it has said meets the condition; fails when it ends before that. */
  async until(condition: (command: this) => boolean): Promise<void> {
    while (!condition(this)) {
      if (this.isEnded) throw new Error(`ended too early: ${JSON.stringify(this.stdout.toString())}`);
      await new Promise<void>((resolve) => (this.#heard = resolve));
    }
  }

  says(text: string): Promise<void> {
    return this.until(() => this.stdout.includes(text));
  }

  receive({ type, payload }: Frame): void {
    // Kept beyond the chunk that it came in.
    const bytes = Buffer.from(payload);
    if (this.isEnded) throw new Error(`a frame ${type} after the end`);
    if (type === 'O') this.#out.push(bytes);
    else if (type === 'e') this.#err.push(bytes);
    else if (type === 'U') this.#answers.shift()?.(toObject(bytes));
    else this.#end(type, bytes);
    if (this.#grants && (type === 'O' || type === 'e')) this.grant(bytes.length);
    this.#heard();
  }

  #end(type: string, bytes: Buffer): void {
    this.isEnded = true;
    const figures = toObject(bytes);
    const wait = figures['wait'] ?? 0;
    this.#finish({
      type,
      words: bytes.toString(),
      exitCode: wait >> 8,
      signal: wait & 0x7f,
      figures,
      stdout: Buffer.concat(this.#out),
      stderr: Buffer.concat(this.#err),
    });
  }
}

function toObject(bytes: Uint8Array): Record<string, number> {
  return Object.fromEntries(parseFigures(bytes));
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
