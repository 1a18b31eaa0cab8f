import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, constants, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { LONGEST_PAYLOAD } from '../../src/drivers/agent/agent-link.ts';
import { FrameReader, encodeFrame, type Frame } from '../../src/lib/frames.ts';
import { parseFigures } from '../../src/drivers/agent/report.ts';
import { Command, type StartOptions } from './command.ts';
import { spawnAgent } from './harness.ts';

const MARKER_BYTES = 32;
const GREETING_BYTES = 8;
/** Out of the way of those that tests use. */
const FIRST_ID = 1_000_000;

/** What the test knows of one command: its output as it came, both streams in one row, and its last words. */
export interface Heard {
  readonly output: { readonly type: string; readonly bytes: Buffer }[];
  /** In order, such as `['P', 'X']`. */
  readonly last: Frame[];
}

export function exitCodeOf({ last }: Heard): number | undefined {
  const end = last.find(({ type }) => type === 'X');
  return end === undefined ? undefined : (parseFigures(end.payload).get('wait') ?? 0) >> 8;
}

export function bytesOf({ output }: Heard, type?: 'O' | 'e'): Buffer {
  const pieces = type === undefined ? output : output.filter((piece) => piece.type === type);
  return Buffer.concat(pieces.map(({ bytes }) => bytes));
}

export const isOver = ({ last }: Heard): boolean => last.some(({ type }) => 'XFL'.includes(type));

/** One server in the life of an agent that lasts: the first, or one that greets. */
export class Server {
  /** What the agent knew when we greeted; undefined before its answer. */
  inherited: number[] | undefined;
  /** How often it has answered. */
  answers = 0;
  readonly greeting: Buffer | undefined;
  readonly #heard = new Map<number, Heard>();
  readonly #write: (bytes: Uint8Array) => void;
  #reader = new FrameReader(LONGEST_PAYLOAD);
  #stale: Buffer = Buffer.alloc(0);
  #isReady = false;
  #waiting: (() => void)[] = [];

  constructor(write: (bytes: Uint8Array) => void, marker: Buffer | undefined) {
    this.#write = write;
    if (marker !== undefined) this.greeting = Buffer.concat([marker, randomBytes(GREETING_BYTES)]);
  }

  receive(bytes: Buffer): void {
    let rest = bytes;
    if (this.greeting !== undefined) {
      // Raw bytes between frames: whatever comes before is for somebody else.
      rest = Buffer.concat([this.#stale, bytes]);
      const at = rest.indexOf(this.greeting);
      if (at >= 0) {
        this.answers++;
        this.#reader = new FrameReader(LONGEST_PAYLOAD);
        rest = rest.subarray(at + this.greeting.length);
        this.#stale = Buffer.alloc(0);
      } else if (this.answers === 0) {
        this.#stale = rest.subarray(-this.greeting.length);
        return;
      } else rest = bytes;
    }
    for (const frame of this.#reader.push(rest)) this.#handle(frame);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #handle({ type, id, payload }: Frame): void {
    const bytes = Buffer.from(payload);
    if (type === 'R') this.#isReady = true;
    else if (type === 'H') this.inherited = bytes.toString().split(' ').filter(Boolean).map(Number);
    else if (type === 'O' || type === 'e') this.heard(id).output.push({ type, bytes });
    else this.heard(id).last.push({ type, id, payload: bytes });
  }

  heard(id: number): Heard {
    const heard = this.#heard.get(id) ?? { output: [], last: [] };
    this.#heard.set(id, heard);
    return heard;
  }

  get ids(): number[] {
    return [...this.#heard.keys()];
  }

  /** Waits until what has come meets the condition. */
  async until(condition: (server: this) => boolean): Promise<void> {
    while (!condition(this)) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async ready(): Promise<void> {
    await this.until(() => this.#isReady);
  }

  send(type: string, id: number, payload?: Uint8Array | string): void {
    this.#write(encodeFrame(type, id, payload === undefined ? undefined : Buffer.from(payload)));
  }

  sendRaw(bytes: Uint8Array): void {
    this.#write(bytes);
  }

  start(id: number, argv: readonly string[], options: StartOptions = {}): void {
    this.#write(new Command(id, () => {}, false).toStart(argv, options));
  }

  sh(id: number, script: string, options: StartOptions = {}): void {
    this.start(id, ['sh', '-c', script], options);
  }

  acknowledge(id: number, bytes: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(bytes);
    this.send('C', id, payload);
  }

  resume(id: number, from: number): void {
    this.send('Z', id, String(from));
  }

  async end(id: number): Promise<Heard> {
    await this.until(() => isOver(this.heard(id)));
    return this.heard(id);
  }

  async hears(id: number, text: string): Promise<void> {
    await this.until(() => bytesOf(this.heard(id)).includes(text));
  }

  /** The command runs to its end; everything is acknowledged. */
  async run(id: number, script: string, options: StartOptions = {}): Promise<string> {
    this.sh(id, script, options);
    const heard = await this.end(id);
    this.send('D', id);
    return bytesOf(heard).toString();
  }

  async greet(): Promise<readonly number[]> {
    if (this.greeting === undefined) throw new Error('the first server does not greet');
    this.#write(this.greeting);
    await this.until(() => this.inherited !== undefined);
    return this.inherited ?? [];
  }
}

/** The real agent in a cell that outlives its servers, which the test plays one after the other. */
export class LastingAgent {
  readonly marker = randomBytes(MARKER_BYTES);
  readonly closed: Promise<unknown>;
  readonly #child: ReturnType<typeof spawnAgent>;
  readonly #input: Writable;
  readonly #output: Readable;
  readonly #folder: string | undefined;
  #server: Server | undefined;
  #words = '';

  private constructor(child: ReturnType<typeof spawnAgent>, folder: string | undefined) {
    this.#child = child;
    this.#folder = folder;
    this.#input = folder === undefined ? child.stdin : openFifo(folder, 'in');
    this.#output = folder === undefined ? child.stdout : openFifo(folder, 'out');
    this.closed = once(child, 'close');
    this.#input.on('error', () => {});
    child.stderr.on('data', (bytes: Buffer) => (this.#words += bytes.toString()));
    child.stdout.resume();
    this.#output.on('data', (bytes: Buffer) => this.#server?.receive(bytes));
  }

  /** `fifos`: as in a cell of the oci driver; otherwise as in a container. */
  static async start(kind: 'pipes' | 'fifos' = 'pipes'): Promise<{ agent: LastingAgent; server: Server }> {
    const folder = kind === 'fifos' ? makeFifos() : undefined;
    const ends = folder === undefined ? [] : [join(folder, 'in'), join(folder, 'out')];
    const agent = new LastingAgent(spawnAgent({}, ['--lasting', ...ends]), folder);
    const server = agent.connect('first');
    await Promise.race([
      server.ready(),
      agent.closed.then(() => Promise.reject(new Error(`the agent ended: ${agent.#words}`))),
    ]);
    if (folder !== undefined) for (const end of ends) chmodSync(end, 0);
    server.send('M', 0, agent.marker);
    // With the answer to this it has read the marker.
    await server.run(FIRST_ID, 'true');
    return { agent, server };
  }

  get fifos(): string {
    return this.#folder ?? '';
  }

  get words(): string {
    return this.#words;
  }

  /** From now on this server hears, and the one before it nothing any more. */
  connect(which: 'first' | 'next' = 'next'): Server {
    const server = new Server(
      (bytes) => void this.#input.write(bytes),
      which === 'first' ? undefined : this.marker,
    );
    this.#server = server;
    this.#output.resume();
    return server;
  }

  /** The server is killed. `deaf`: nobody reads any more; otherwise somebody does and throws it away, as an engine. */
  hangUp(how: 'deaf' | 'discarding'): void {
    this.#server = undefined;
    if (how === 'deaf') this.#output.pause();
  }

  /** Resolves when its namespace is gone. */
  async end(): Promise<void> {
    if (this.#folder === undefined) this.#child.stdin.end();
    else {
      // What unshare has to say about that is nothing of the agent's.
      this.#child.stderr.removeAllListeners('data').resume();
      killChildren(this.#child.pid ?? 0);
      this.#input.destroy();
      this.#output.destroy();
    }
    this.#output.resume();
    await this.closed;
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true });
  }
}

/** By number: the agent has changed its user, and then the kernel does not end it with its parent. */
function killChildren(parent: number): void {
  const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'latin1');
  for (const pid of children.split(' ').filter(Boolean)) process.kill(Number(pid), 'SIGKILL');
}

function makeFifos(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hotcell-agent-'));
  chmodSync(folder, 0o755);
  spawnSync('mkfifo', ['-m', '666', join(folder, 'in'), join(folder, 'out')]);
  return folder;
}

/** Both ways, as the driver does: opening only one would wait for the other side. */
function openFifo(folder: string, name: 'in' | 'out'): Socket {
  const fd = openSync(join(folder, name), constants.O_RDWR | constants.O_NONBLOCK);
  return new Socket({ fd, readable: name === 'out', writable: name === 'in' });
}

/** An agent for one test, gone afterwards; it must have had nothing to complain about. */
export async function withLasting(
  use: (agent: LastingAgent, server: Server) => Promise<void>,
  kind: 'pipes' | 'fifos' = 'pipes',
): Promise<void> {
  const { agent, server } = await LastingAgent.start(kind);
  try {
    await use(agent, server);
  } finally {
    await agent.end();
  }
  if (agent.words !== '') throw new Error(`the agent says: ${agent.words}`);
}
