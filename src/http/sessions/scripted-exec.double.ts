import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecReport, ExecView, OutputEvent, OutputPart, SessionExec } from '../../sessions/api.ts';
import type { ExecKind, ExecResult } from '../../sessions/stored-exec.ts';

/** What the example of the documents says, in the words of the use case. */
export const EXEC_RESULT: ExecResult = {
  execId: 'exec_1',
  ok: true,
  exitCode: 0,
  cwd: '/workspace/proj_abc123',
  cwdNote: null,
  durationMs: 1234,
  end: { reason: 'exit', message: 'it ended by itself', signal: null, killedBy: null },
  limitsReached: [],
  cpuTimeMs: 900,
  peakMemoryBytes: 52_428_800,
  stdoutBytes: 9,
  stderrBytes: 0,
  egressRefused: [],
};

/** A command whose output and end a test decides. What was asked of it stands in `calls`. */
export class ScriptedExec implements SessionExec {
  readonly id: string;
  readonly calls: unknown[][] = [];
  readonly kind: ExecKind;
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

  constructor(id: string, kind: ExecKind = 'foreground') {
    this.id = id;
    this.kind = kind;
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
    const result = { ...EXEC_RESULT, execId: this.id, ...changes };
    this.#result = result;
    this.#add({ type: 'exit', from: this.#bytes, result });
    this.#ended.resolve(result);
  }

  #add(event: OutputEvent): void {
    this.#events.push(event);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  describe(): ExecView {
    return {
      id: this.id,
      command: 'npm test',
      kind: this.kind,
      startedAt: Date.parse('2026-01-01T12:00:00.000Z'),
      outputBytes: this.#bytes,
      state: this.#result === undefined ? 'running' : 'ended',
      result: this.#result,
    };
  }

  async report(): Promise<ExecReport> {
    const result = await this.result;
    const textOf = (stream: string): string =>
      this.#events
        .map((event) => (event.type === stream && 'bytes' in event ? String(event.bytes) : ''))
        .join('');
    return { ...result, stdout: textOf('stdout'), stderr: textOf('stderr'), cutBytes: 0 };
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

  read(from: number, limitBytes: number): Promise<OutputPart> {
    this.#call('read', from, limitBytes);
    return Promise.resolve({ from, next: this.#bytes, chunks: [], cut: [], result: this.#result });
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
    this.end({ ok: false, exitCode: 137 });
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
