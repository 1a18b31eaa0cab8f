import { setTimeout as sleep } from 'node:timers/promises';
import type { OutputEvent, SessionExec } from '../../sessions/api.ts';
import type { ExecReply, ExecResult, OutputReply, SessionExecReply } from '../../wire/session-exec.ts';
import { EXEC_RESULT_EXAMPLE, EXEC_STATE_EXAMPLE } from './openapi-session-examples.ts';

/** A command whose output and end a test decides. What was asked of it stands in `calls`. */
export class ScriptedExec implements SessionExec {
  readonly id: string;
  readonly calls: unknown[][] = [];
  readonly background: boolean;
  readonly terminal: boolean;
  readonly #events: OutputEvent[] = [];
  readonly #ended = Promise.withResolvers<ExecResult>();
  #changed = Promise.withResolvers<void>();
  #bytes = 0;
  #isLetGo = false;
  #result: ExecResult | undefined;
  /** Readers of its output at the moment. */
  followers = 0;
  /** What a call of this name throws. */
  failing: Readonly<Record<string, Error>> = {};

  constructor(id: string, { background = false, terminal = false } = {}) {
    this.id = id;
    this.background = background;
    this.terminal = terminal;
  }

  get result(): Promise<ExecResult> {
    return this.#ended.promise;
  }

  get outputBytes(): number {
    return this.#bytes;
  }

  print(stream: 'stdout' | 'stderr', output: string | Uint8Array): void {
    const bytes = Buffer.from(output);
    this.#add({ type: stream, from: this.#bytes, bytes });
    this.#bytes += bytes.length;
  }

  /** That many bytes that were written and are no longer kept. */
  cut(count: number): void {
    this.#add({ type: 'cut', from: this.#bytes, to: this.#bytes + count });
    this.#bytes += count;
  }

  /** Its output ends without its end, as when the server stops and the command goes on. */
  letGo(): void {
    this.#isLetGo = true;
    this.#changed.resolve();
  }

  end(changes: Partial<ExecResult> = {}): void {
    const result = { ...EXEC_RESULT_EXAMPLE, exec_id: this.id, ...changes };
    this.#result = result;
    this.#add({ type: 'exit', from: this.#bytes, result });
    this.#ended.resolve(result);
  }

  #add(event: OutputEvent): void {
    this.#events.push(event);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  describe(): ExecReply {
    const { id: exec_id, background, terminal } = this;
    return {
      ...EXEC_STATE_EXAMPLE,
      exec_id,
      background,
      terminal,
      output_bytes: this.#bytes,
      state: this.#result === undefined ? 'running' : 'ended',
      result: this.#result ?? null,
    };
  }

  async reply(): Promise<SessionExecReply> {
    const result = await this.result;
    const textOf = (stream: string): string =>
      this.#events
        .map((event) => (event.type === stream && 'bytes' in event ? String(event.bytes) : ''))
        .join('');
    return { ...result, stdout: textOf('stdout'), stderr: textOf('stderr'), output_cut_bytes: 0 };
  }

  async *follow(from: number, signal: AbortSignal): AsyncGenerator<OutputEvent> {
    this.#call('follow', from);
    this.followers += 1;
    const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    try {
      for (let index = 0; !signal.aborted && !this.#isLetGo;) {
        const event = this.#events[index];
        if (event === undefined) {
          await Promise.race([this.#changed.promise, aborted]);
          continue;
        }
        index += 1;
        const seen = partAfter(event, from);
        if (seen !== undefined) yield seen;
        if (event.type === 'exit') return;
      }
    } finally {
      this.followers -= 1;
    }
  }

  read(from: number, limitBytes: number): Promise<OutputReply> {
    this.#call('read', from, limitBytes);
    return Promise.resolve({ from, next: this.#bytes, chunks: [], cut: [], result: this.#result ?? null });
  }

  write(bytes: Uint8Array): void {
    this.#call('write', Buffer.from(bytes).toString('latin1'));
  }

  closeStdin(): void {
    this.#call('closeStdin');
  }

  resize(size: object): void {
    this.#call('resize', size);
  }

  kill(): Promise<void> {
    this.#call('kill');
    this.end({ ok: false, exit_code: 137 });
    return Promise.resolve();
  }

  #call(name: string, ...parameters: unknown[]): void {
    const failure = this.failing[name];
    if (failure !== undefined) throw failure;
    this.calls.push([name, ...parameters]);
  }
}

function partAfter(event: OutputEvent, from: number): OutputEvent | undefined {
  if (event.type === 'exit') return event;
  if (event.type === 'cut')
    return event.to > from ? { ...event, from: Math.max(event.from, from) } : undefined;
  const skipped = Math.max(0, from - event.from);
  if (skipped >= event.bytes.length) return undefined;
  return { ...event, from: event.from + skipped, bytes: event.bytes.subarray(skipped) };
}

/** Resolves when a number has stopped growing. */
export async function untilStill(read: () => number): Promise<void> {
  for (let before = -1; before !== read();) {
    before = read();
    await sleep(200);
  }
}
