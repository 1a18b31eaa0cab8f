import type { Exec, ExecEvent } from '../core/exec.ts';
import { EventQueue } from '../lib/event-queue.ts';
import { FrameReader, encodeFrame, type Frame } from '../lib/frames.ts';

const NO_USAGE = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
const LONGEST_PAYLOAD = 1024 * 1024;

/** For tests: a cell whose relay says what the test wants, as a hostile one would. */
export class ScriptedCell implements Exec {
  readonly ended = Promise.resolve();
  readonly #events = new EventQueue<ExecEvent>();
  readonly events: AsyncIterable<ExecEvent> = this.#events;
  /** What it was sent. */
  readonly frames: Frame[] = [];
  killed = false;
  stdinClosed = false;
  readonly #reader = new FrameReader(LONGEST_PAYLOAD);

  say(type: string, id: number, payload?: Uint8Array): void {
    this.sayBytes(encodeFrame(type, id, payload));
  }

  sayBytes(bytes: Uint8Array): void {
    this.#events.push({ type: 'stdout', bytes });
  }

  lose(error: Error): void {
    this.#events.fail(error);
  }

  exit(): void {
    this.#events.push({ type: 'exit', outcome: { kind: 'exited', code: 0 }, usage: NO_USAGE });
    this.#events.end();
  }

  /** What it was sent of one type about one connection. */
  heard(type: string, id: number): Frame[] {
    return this.frames.filter((frame) => frame.type === type && frame.id === id);
  }

  write(bytes: Uint8Array): void {
    this.frames.push(...this.#reader.push(bytes));
  }

  closeStdin(): void {
    this.stdinClosed = true;
    this.exit();
  }

  kill(): Promise<void> {
    this.killed = true;
    this.exit();
    return Promise.resolve();
  }

  terminate(): void {}

  usage(): Promise<typeof NO_USAGE> {
    return Promise.resolve(NO_USAGE);
  }
}
