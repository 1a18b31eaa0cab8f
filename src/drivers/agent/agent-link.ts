import { randomBytes } from 'node:crypto';
import { HotcellError } from '../../core/errors.ts';
import type { Deadline, ExecRequest, ReachableLimit } from '../../core/exec.ts';
import { AgentExec, encodeDeadline, type Account, type AgentExecParts } from './agent-exec.ts';
import { FrameReader, encodeFrame, type Frame } from '../../lib/frames.ts';
import { parseFigures, type Figures } from './report.ts';

export interface AgentLinkParts {
  /** For error messages. */
  readonly cellName: string;
  write(bytes: Uint8Array): void;
  /** Counts of limits reached, where only the host can see them; the difference is what happened during a command. */
  countReached?(): Readonly<Record<'memoryBytes' | 'processes', number>>;
  /** Ends the cell at once; rejects when that is not possible. */
  readonly giveUp: () => Promise<void>;
  /** For the agent of a cell that lasts, which would otherwise end with the connection. */
  readonly lasting?: LastingLink;
}

export interface LastingLink {
  /** Bytes that nobody else knows, by which the agent knows the next server. */
  readonly marker: Uint8Array;
  /** The agent has served another server before. */
  readonly adopted: boolean;
}

const encoder = new TextEncoder();
/** The agent sends at most 64 KiB at once. */
export const LONGEST_PAYLOAD = 1024 * 1024;
const ANSWER_MS = 5000;
const STARTS_MS = 30_000;
const GREET_AGAIN_MS = 250;
/** A kill that fails ends the cell. One with somebody's work in it is given more time: it may be very busy. */
const KILL_MS = 3000;
const KILL_LASTING_MS = 30_000;
/** The agent writes a line at once or not at all, which a pipe allows for 4096 bytes. A character has three at most. */
const LOG_LINE_CHARACTERS = 1300;
/** What tells one greeting from another. */
const GREETING_BYTES = 8;

/** The connection to the agent that is PID 1 of a cell. */
export class AgentLink {
  readonly #parts: AgentLinkParts;
  #ready = Promise.withResolvers<string>();
  #reader = new FrameReader(LONGEST_PAYLOAD);
  readonly #execs = new Map<number, AgentExec>();
  readonly #questions = new Map<number, ((figures: Figures | undefined) => void)[]>();
  #lastId = 0;
  #closed: HotcellError | undefined;
  /** Why nothing can be sent at present. */
  #suspended: HotcellError | undefined;
  /** The marker and some bytes more; the agent's answer begins with the same. */
  #greeting: Uint8Array | undefined;
  /** The end of what came before that answer, which was for the server before us. */
  #stale: Buffer | undefined;
  /** Once more after `relink`, since it may have got lost. */
  #tellEnd: (() => void) | undefined;
  /** Commands of the server before us that nobody has resumed yet. */
  readonly #inherited = new Set<number>();

  constructor(parts: AgentLinkParts) {
    this.#parts = parts;
    if (parts.lasting?.adopted === true) this.#beginAnew(parts.lasting.marker);
    // Whoever waits hears of it; whoever does not need not.
    this.#ready.promise.catch(() => {});
  }

  /** What comes next is for somebody else, until the agent answers our greeting. */
  #beginAnew(marker: Uint8Array): void {
    this.#greeting = Buffer.concat([marker, randomBytes(GREETING_BYTES)]);
    this.#stale = Buffer.alloc(0);
    this.#reader = new FrameReader(LONGEST_PAYLOAD);
  }

  /** The connection is gone, the cell may not be: commands wait until `relink`. Only of a cell that lasts. */
  suspend(problem: HotcellError): void {
    this.#suspended = problem;
  }

  /** There is a new connection to the same agent. Every command goes on with the byte after the last one that came. */
  async relink(): Promise<void> {
    const { lasting } = this.#parts;
    if (lasting === undefined || this.#closed !== undefined) return;
    this.#ready = Promise.withResolvers();
    this.#ready.promise.catch(() => {});
    this.#beginAnew(lasting.marker);
    const inheritedBefore = new Set(this.#inherited);
    await this.#untilAnswered();
    this.#suspended = undefined;
    this.#tellEnd?.();
    for (const [id, exec] of this.#execs) {
      if (this.#inherited.delete(id)) exec.askAgain();
      else
        exec.lost(new HotcellError('CELL_LOST', `${this.#parts.cellName}: the agent knows no such command`));
    }
    // Those that ended while nobody listened, and whose end was noted before.
    for (const id of this.#inherited) {
      if (inheritedBefore.has(id)) continue;
      this.#inherited.delete(id);
      this.#send('D', id);
    }
  }

  /** Resolves when the agent runs, with what it said then; rejects when it never will, or has not within a while. */
  async untilReady(): Promise<string> {
    const words = await this.#untilAnswered();
    const { lasting } = this.#parts;
    if (lasting?.adopted === false) this.#send('M', 0, lasting.marker);
    return words;
  }

  /** Tells the one that makes runs in slots what slots to have. */
  async openSlots(plan: string): Promise<string> {
    this.#send('N', 0, encoder.encode(plan));
    return this.untilReady();
  }

  async #untilAnswered(): Promise<string> {
    const { cellName, giveUp, lasting } = this.#parts;
    const timer = setTimeout(() => {
      this.close(new HotcellError('CELL_START_FAILED', `cell ${cellName}: its agent does not start`));
      // One that another server made has work in it: the next start tries again.
      if (lasting?.adopted !== true) giveUp().catch(() => {});
    }, STARTS_MS);
    const greeting = this.#greet();
    try {
      return await this.#ready.promise;
    } finally {
      clearTimeout(timer);
      clearInterval(greeting);
    }
  }

  /** Again and again: what the server before us left half said may swallow the first one. */
  #greet(): NodeJS.Timeout | undefined {
    const greeting = this.#greeting;
    if (greeting === undefined) return undefined;
    this.#parts.write(greeting);
    return setInterval(() => this.#parts.write(greeting), GREET_AGAIN_MS);
  }

  /** A command that a server before us started, from this byte of its output on; undefined if the agent knows no such one. */
  resume(id: number, fromByte: number): AgentExec | undefined {
    if (this.#closed !== undefined || !this.#inherited.delete(id)) return undefined;
    const exec = this.#toExec(id, { alone: false, terminal: true, fromByte });
    this.#send('Z', id, encoder.encode(String(fromByte)));
    return exec;
  }

  /** Starts a command. `alone`: the cell exists for this one and ends with it. */
  start(request: ExecRequest & { readonly cwd: string }, options: { readonly alone: boolean }): AgentExec {
    const problem = this.#closed ?? this.#suspended;
    if (problem !== undefined) throw problem;
    // May refuse, so before anything is noted.
    const payload = encodeStart(request, options.alone);
    const id = ++this.#lastId;
    const exec = this.#toExec(id, { ...options, terminal: request.terminal !== undefined, fromByte: 0 });
    this.#send('S', id, payload);
    if (request.deadline !== undefined) this.#send('A', id, encodeDeadline(request.deadline));
    return exec;
  }

  /** Has a run made in a slot; `order` is for whoever makes it. NUL parts its words. */
  begin(order: readonly string[], account: Account): AgentExec {
    if (this.#closed !== undefined) throw this.#closed;
    const payload = encodeWords(order);
    const id = ++this.#lastId;
    const exec = this.#toExec(id, { alone: true, terminal: false, fromByte: 0, account });
    this.#send('S', id, payload);
    return exec;
  }

  /** The deadline of the cell itself; undefined takes it back. */
  endAfter(deadline: Deadline | undefined): void {
    const endsAt = Date.now() + (deadline?.afterMs ?? 0);
    this.#tellEnd = () => {
      const left = deadline && { ...deadline, afterMs: Math.max(0, endsAt - Date.now()) };
      this.#send('A', 0, left && encodeDeadline(left));
    };
    this.#tellEnd();
  }

  /** A line for the log that the engine keeps of the cell. */
  writeLog(line: string): void {
    const cut = line.length > LOG_LINE_CHARACTERS ? `${line.slice(0, LOG_LINE_CHARACTERS)}…` : line;
    this.#send('G', 0, encoder.encode(`${cut}\n`));
  }

  #toExec(
    id: number,
    options: Pick<AgentExecParts, 'alone' | 'terminal' | 'fromByte' | 'account'>,
  ): AgentExec {
    const before = this.#parts.countReached?.();
    const exec: AgentExec = new AgentExec({
      id,
      ...options,
      lasting: this.#parts.lasting !== undefined,
      killMs: this.#parts.lasting === undefined ? KILL_MS : KILL_LASTING_MS,
      send: (type, bytes) => this.#send(type, id, bytes),
      ask: () => this.#ask(id),
      reached: () => this.#reachedSince(before),
      giveUp: () => this.#parts.giveUp(),
    });
    this.#execs.set(id, exec);
    return exec;
  }

  #ask(id: number): Promise<Figures | undefined> {
    if (!this.#execs.has(id)) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), ANSWER_MS);
      const answered = (figures: Figures | undefined): void => {
        clearTimeout(timer);
        resolve(figures);
      };
      this.#questions.set(id, [...(this.#questions.get(id) ?? []), answered]);
      this.#send('U', id);
    });
  }

  #send(type: string, id: number, payload?: Uint8Array): boolean {
    if (this.#closed !== undefined || this.#suspended !== undefined) return false;
    this.#parts.write(encodeFrame(type, id, payload));
    return true;
  }

  receive(bytes: Uint8Array): void {
    if (this.#closed !== undefined) return;
    try {
      for (const frame of this.#reader.push(this.#skipStale(bytes))) this.#handle(frame);
    } catch (error) {
      // Nothing that follows can be understood.
      this.close(
        new HotcellError('CELL_LOST', `${this.#parts.cellName}: its agent talks nonsense: ${String(error)}`),
      );
      this.#parts.giveUp().catch(() => {});
    }
  }

  /** Whatever follows our own greeting is for us. */
  #skipStale(bytes: Uint8Array): Uint8Array {
    const greeting = this.#greeting;
    if (this.#stale === undefined || greeting === undefined) return bytes;
    const all = Buffer.concat([this.#stale, bytes]);
    const at = all.indexOf(greeting);
    if (at < 0) {
      this.#stale = all.subarray(Math.max(0, all.length - greeting.length));
      return new Uint8Array();
    }
    this.#stale = undefined;
    return all.subarray(at + greeting.length);
  }

  /** The commands that the agent knows: those that run, and those whose end nobody has noted. */
  #onGreeting(payload: Uint8Array): void {
    for (const word of Buffer.from(payload).toString('latin1').split(' ').filter(Boolean)) {
      const id = Number(word);
      if (!Number.isSafeInteger(id) || id < 1) throw new RangeError('a command without a number');
      this.#inherited.add(id);
      this.#lastId = Math.max(this.#lastId, id);
    }
    this.#ready.resolve('');
  }

  #handle({ type, id, payload }: Frame): void {
    if (type === 'R') this.#ready.resolve(Buffer.from(payload).toString());
    if (type === 'F' && id === 0) this.#failed(Buffer.from(payload).toString());
    if (type === 'H') this.#onGreeting(payload);
    const exec = this.#execs.get(id);
    if (exec === undefined) return;
    switch (type) {
      case 'O':
        exec.output('stdout', payload);
        return;
      case 'e':
        exec.output('stderr', payload);
        return;
      case 'P':
        exec.place(Buffer.from(payload).toString());
        return;
      case 'U':
        this.#answer(id, parseFigures(payload));
        return;
      case 'X':
        exec.exited(parseFigures(payload));
        break;
      case 'F':
        exec.failed(Buffer.from(payload).toString());
        break;
      case 'L':
        exec.lost(
          new HotcellError('CELL_LOST', `${this.#parts.cellName}: the supervisor of a command was killed`),
        );
        break;
      default:
        throw new RangeError(`a frame of type ${JSON.stringify(type)}`);
    }
    this.#execs.delete(id);
    this.#answer(id, exec.figures);
  }

  /** The agent itself cannot go on. */
  #failed(words: string): void {
    this.close(new HotcellError('CELL_START_FAILED', `cell ${this.#parts.cellName} did not start: ${words}`));
  }

  #answer(id: number, figures: Figures | undefined): void {
    const waiting = this.#questions.get(id) ?? [];
    this.#questions.delete(id);
    for (const answered of waiting) answered(figures);
  }

  #reachedSince(
    before: ReturnType<NonNullable<AgentLinkParts['countReached']>> | undefined,
  ): ReachableLimit[] {
    const now = this.#parts.countReached?.();
    if (now === undefined || before === undefined) return [];
    return (['memoryBytes', 'processes'] as const).filter((limit) => now[limit] > before[limit]);
  }

  /** The connection is gone: everything that runs is lost, or known to have run out of memory. */
  close(error: HotcellError, options: { readonly outOfMemory: boolean } = { outOfMemory: false }): void {
    if (this.#closed !== undefined) return;
    this.#closed = error;
    this.#ready.reject(error);
    for (const exec of this.#execs.values()) {
      if (options.outOfMemory) exec.ranOutOfMemory();
      else exec.lost(error);
    }
    for (const waiting of this.#questions.values()) for (const answered of waiting) answered(undefined);
    this.#questions.clear();
    this.#execs.clear();
  }
}

/** NUL ends no word of an argv, a variable or a path, so it can part them. */
function encodeStart(request: ExecRequest & { readonly cwd: string }, alone: boolean): Uint8Array {
  const words = [
    alone ? '1' : '0',
    request.cwd,
    request.touch ?? '',
    request.terminal === undefined ? '' : `${request.terminal.rows} ${request.terminal.columns}`,
    request.fallbackCwd ?? '',
    String(request.argv.length),
    ...request.argv,
    ...Object.entries(request.env).map(([name, value]) => `${name}=${value}`),
  ];
  return encodeWords(words);
}

function encodeWords(words: readonly string[]): Uint8Array {
  // SECURITY: a NUL from outside would make more words of one, such as a variable that nobody gave.
  if (words.some((word) => word.includes('\0'))) throw new RangeError('a word of a command contains NUL');
  return encoder.encode(words.join('\0'));
}
