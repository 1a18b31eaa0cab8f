import { HotcellError } from '../../core/errors.ts';
import type { ExecRequest, ReachableLimit } from '../../core/exec.ts';
import { AgentExec } from './agent-exec.ts';
import { FrameReader, encodeFrame, type Frame } from './frames.ts';
import { parseFigures, type Figures } from './report.ts';

export interface AgentLinkParts {
  /** For error messages. */
  readonly cellName: string;
  write(bytes: Uint8Array): void;
  /** Counts of limits reached, where only the host can see them; the difference is what happened during a command. */
  countReached?(): Readonly<Record<'memoryBytes' | 'processes', number>>;
  /** Ends the cell at once; rejects when that is not possible. */
  readonly giveUp: () => Promise<void>;
}

const encoder = new TextEncoder();
const ANSWER_MS = 5000;
const STARTS_MS = 30_000;

/** The connection to the agent that is PID 1 of a cell. */
export class AgentLink {
  readonly #ready: Promise<void>;
  readonly #parts: AgentLinkParts;
  readonly #reader = new FrameReader();
  readonly #execs = new Map<number, AgentExec>();
  readonly #questions = new Map<number, ((figures: Figures | undefined) => void)[]>();
  #settle: { resolve: () => void; reject: (error: Error) => void };
  #lastId = 0;
  #closed: HotcellError | undefined;

  constructor(parts: AgentLinkParts) {
    this.#parts = parts;
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    this.#ready = promise;
    this.#settle = { resolve: () => resolve(undefined), reject };
    // Whoever waits hears of it; whoever does not need not.
    promise.catch(() => {});
  }

  /** Resolves when the agent runs; rejects when it never will, or has not within a while. */
  async untilReady(): Promise<void> {
    const { cellName, giveUp } = this.#parts;
    const timer = setTimeout(() => {
      this.close(new HotcellError('CELL_START_FAILED', `cell ${cellName}: its agent does not start`));
      giveUp().catch(() => {});
    }, STARTS_MS);
    try {
      await this.#ready;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Starts a command. `alone`: the cell exists for this one and ends with it. */
  start(request: ExecRequest & { readonly cwd: string }, options: { readonly alone: boolean }): AgentExec {
    if (this.#closed !== undefined) throw this.#closed;
    // May refuse, so before anything is noted.
    const payload = encodeStart(request, options.alone);
    const id = ++this.#lastId;
    const before = this.#parts.countReached?.();
    const exec: AgentExec = new AgentExec({
      alone: options.alone,
      send: (type, bytes) => this.#send(type, id, bytes),
      ask: () => this.#ask(id),
      reached: () => this.#reachedSince(before),
      giveUp: () => this.#parts.giveUp(),
    });
    this.#execs.set(id, exec);
    this.#send('S', id, payload);
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

  #send(type: string, id: number, payload?: Uint8Array): void {
    if (this.#closed === undefined) this.#parts.write(encodeFrame(type, id, payload));
  }

  receive(bytes: Uint8Array): void {
    if (this.#closed !== undefined) return;
    try {
      for (const frame of this.#reader.push(bytes)) this.#handle(frame);
    } catch (error) {
      // Nothing that follows can be understood.
      this.close(
        new HotcellError('CELL_LOST', `${this.#parts.cellName}: its agent talks nonsense: ${String(error)}`),
      );
      this.#parts.giveUp().catch(() => {});
    }
  }

  #handle({ type, id, payload }: Frame): void {
    if (type === 'R') this.#settle.resolve();
    const exec = this.#execs.get(id);
    if (exec === undefined) return;
    switch (type) {
      case 'O':
        exec.output('stdout', payload);
        return;
      case 'e':
        exec.output('stderr', payload);
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
    this.#settle.reject(error);
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
    String(request.argv.length),
    ...request.argv,
    ...Object.entries(request.env).map(([name, value]) => `${name}=${value}`),
  ];
  // SECURITY: a NUL from outside would make more words of one, such as a variable that nobody gave.
  if (words.some((word) => word.includes('\0'))) throw new RangeError('a word of a command contains NUL');
  return encoder.encode(words.join('\0'));
}
