import type {
  Deadline,
  Exec,
  ExecEvent,
  ExecOutcome,
  ExecRequest,
  KillCause,
  LastingExec,
  Usage,
} from '../core/exec.ts';
import { EventQueue } from '../lib/event-queue.ts';

const NO_USAGE: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };

type ExitEvent = Extract<ExecEvent, { type: 'exit' }>;

/** For tests: a command in a cell, which outlives servers and does what the test says. */
export class ScriptedCommand {
  readonly id: number;
  readonly request: ExecRequest;
  /** Output that no server has noted, and the first byte of it. */
  readonly #retained: { type: 'stdout' | 'stderr'; bytes: Uint8Array }[] = [];
  noted = 0;
  readonly heard: string[] = [];
  stdin = '';
  /** When it would be asked to end without a server, and how long it would have then. */
  deadline: Deadline | undefined;
  #end: ExitEvent | Error | undefined;
  #attached: ScriptedExec | undefined;
  /** What it does when it is asked to end; ends with SIGTERM unless the test says otherwise. */
  onTerminate: () => void = () => this.exit({ kind: 'signalled', signal: 15 });

  constructor(id: number, request: ExecRequest) {
    this.id = id;
    this.request = request;
  }

  get text(): string {
    return this.request.verbatim?.argv[0] ?? this.request.argv[2] ?? this.request.argv.join(' ');
  }

  get isEnded(): boolean {
    return this.#end !== undefined;
  }

  say(text: string | Uint8Array, type: 'stdout' | 'stderr' = 'stdout'): void {
    const piece = { type, bytes: typeof text === 'string' ? new TextEncoder().encode(text) : text };
    this.#retained.push(piece);
    this.#attached?.push(piece);
  }

  exit(outcome: ExecOutcome | number, extras: Partial<ExitEvent> = {}): void {
    const fate = typeof outcome === 'number' ? ({ kind: 'exited', code: outcome } as const) : outcome;
    this.#finish({ type: 'exit', outcome: fate, usage: NO_USAGE, ...extras });
  }

  lose(error: Error): void {
    this.#finish(error);
  }

  #finish(end: ExitEvent | Error): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#attached?.finish(end);
  }

  /** A server is there, and has the output up to this byte. */
  attach(exec: ScriptedExec, fromByte: number): void {
    this.note(fromByte - this.noted);
    this.#attached = exec;
    for (const piece of this.#retained) exec.push(piece);
    if (this.#end !== undefined) exec.finish(this.#end);
  }

  detach(error: Error): void {
    const exec = this.#attached;
    this.#attached = undefined;
    exec?.detach(error);
  }

  note(bytes: number): void {
    this.noted += bytes;
    let left = bytes;
    while (left > 0) {
      const first = this.#retained[0];
      if (first === undefined) throw new RangeError('more was noted than was said');
      if (first.bytes.length > left) first.bytes = first.bytes.subarray(left);
      else this.#retained.shift();
      left -= Math.min(left, first.bytes.length);
    }
  }
}

/** For tests: one server's hold on a command. */
export class ScriptedExec implements Exec {
  readonly lasting: LastingExec;
  readonly ended: Promise<void>;
  readonly #command: ScriptedCommand;
  readonly #queue = new EventQueue<ExecEvent>();
  readonly #forget: () => void;
  #taken = 0;
  #cause: KillCause | undefined;
  /** Its server is gone, and so it says nothing to the command any more. */
  #isDetached = false;
  #markEnded: () => void = () => {};

  constructor(command: ScriptedCommand, forget: () => void) {
    this.lasting = { number: command.id, forget: () => this.#noted() };
    this.#command = command;
    this.#forget = forget;
    this.ended = new Promise((resolve) => (this.#markEnded = resolve));
  }

  readonly events: AsyncIterable<ExecEvent> = {
    [Symbol.asyncIterator]: () => {
      const inner = this.#queue[Symbol.asyncIterator]();
      return {
        next: async () => {
          if (!this.#isDetached) this.#command.note(this.#taken);
          this.#taken = 0;
          const result = await inner.next();
          if (result.done !== true && result.value.type !== 'exit') this.#taken = result.value.bytes.length;
          return result;
        },
      };
    },
  };

  push(piece: { type: 'stdout' | 'stderr'; bytes: Uint8Array }): void {
    this.#queue.push({ ...piece });
  }

  finish(end: ExitEvent | Error): void {
    if (end instanceof Error) this.#queue.fail(end);
    else {
      this.#queue.push(this.#cause === undefined ? end : { ...end, outcome: toOutcome(this.#cause) });
      this.#queue.end();
    }
    this.#markEnded();
  }

  detach(error: Error): void {
    this.#isDetached = true;
    this.finish(error);
  }

  write(bytes: Uint8Array): void {
    if (this.#isDetached) return;
    this.#command.stdin += new TextDecoder().decode(bytes);
  }

  closeStdin(): void {
    if (this.#isDetached) return;
    this.#command.heard.push('eof');
  }

  kill(cause: KillCause): Promise<void> {
    if (this.#isDetached) return Promise.resolve();
    this.#cause ??= cause;
    this.#command.heard.push(`kill ${cause}`);
    this.#command.exit({ kind: 'signalled', signal: 9 });
    return Promise.resolve();
  }

  terminate(): void {
    if (this.#isDetached) return;
    this.#command.heard.push('terminate');
    this.#command.onTerminate();
  }

  endAfter(deadline: Deadline | undefined): void {
    if (!this.#isDetached) this.#command.deadline = deadline;
  }

  resize(): void {
    this.#command.heard.push('resize');
  }

  #noted(): void {
    if (this.#isDetached) return;
    this.#command.heard.push('forget');
    this.#forget();
  }

  usage(): Promise<Usage> {
    return Promise.resolve(NO_USAGE);
  }
}

function toOutcome(cause: KillCause): ExecOutcome {
  return cause === 'cancelled' ? { kind: 'cancelled' } : { kind: 'limit', limit: cause };
}
