import { HotcellError } from '../core/errors.ts';
import { HeadTail } from '../lib/head-tail.ts';
import type { CodeResult, CodeRun, RunOutput, RunPhase, RunProgress } from './api.ts';
import { Throttle } from './throttle.ts';

export interface LiveRunParts extends Pick<CodeRun, 'id' | 'language' | 'startedAt'> {
  /** Of each stream. */
  readonly keptBytes: number;
  /** Takes out of it what is not for people. */
  cleanStderr(text: string): string;
}

type Stream = 'stdout' | 'stderr';

/** Called more often, listeners would cost more than the run. */
const TELL_EVERY_MS = 100;
const LONGEST_MESSAGE = 500;
const decoder = new TextDecoder();

/** What is known of one run, while it is under way and afterwards. */
export class LiveRun implements CodeRun {
  readonly id: string;
  readonly language: string;
  readonly startedAt: number;
  readonly result: Promise<CodeResult>;
  readonly #parts: LiveRunParts;
  readonly #cancelling = new AbortController();
  readonly #settled = Promise.withResolvers<CodeResult>();
  readonly #kept: Record<Stream, HeadTail>;
  readonly #bytes: Record<Stream, number> = { stdout: 0, stderr: 0 };
  readonly #listeners = new Set<Throttle<RunProgress>>();
  readonly #begunAt = performance.now();
  readonly #phases: Partial<Record<RunPhase, number>> = {};
  /** The end of what was printed. */
  #newest: Uint8Array = new Uint8Array();
  #phase: RunPhase = 'waiting';
  #phaseSince = this.#begunAt;

  constructor(parts: LiveRunParts) {
    this.#parts = parts;
    this.id = parts.id;
    this.language = parts.language;
    this.startedAt = parts.startedAt;
    this.result = this.#settled.promise;
    this.#kept = { stdout: new HeadTail(parts.keptBytes), stderr: new HeadTail(parts.keptBytes) };
  }

  get phase(): RunPhase {
    return this.#phase;
  }

  /** Aborted when nobody wants it any more. */
  get signal(): AbortSignal {
    return this.#cancelling.signal;
  }

  get outputBytes(): number {
    return this.#bytes.stdout + this.#bytes.stderr;
  }

  get durationMs(): number {
    return performance.now() - this.#begunAt;
  }

  get phases(): CodeResult['phases'] {
    return { ...this.#phases, [this.#phase]: this.#spent() };
  }

  #spent(): number {
    return (this.#phases[this.#phase] ?? 0) + performance.now() - this.#phaseSince;
  }

  enter(phase: RunPhase, message: string): void {
    if (phase !== this.#phase) {
      // What a phase said last is told, however soon the next one begins.
      for (const listener of this.#listeners) listener.flush();
      this.#phases[this.#phase] = this.#spent();
      this.#phase = phase;
      this.#phaseSince = performance.now();
    }
    this.#tell(message);
  }

  take(stream: Stream, bytes: Uint8Array): void {
    this.#kept[stream].push(bytes);
    this.#bytes[stream] += bytes.length;
    if (this.#listeners.size === 0) return;
    // With what came before: a program may write a line in several pieces.
    const newest = Buffer.concat([this.#newest, bytes.subarray(-LONGEST_MESSAGE)]);
    this.#newest = newest.subarray(-LONGEST_MESSAGE);
    this.#tell(decoder.decode(this.#newest));
  }

  #tell(message: string): void {
    for (const listener of this.#listeners) listener.offer({ phase: this.#phase, message });
  }

  output(): RunOutput {
    const stdout = this.#kept.stdout.text(this.#bytes.stdout);
    const stderr = this.#kept.stderr.text(this.#bytes.stderr);
    return {
      stdout: stdout.text,
      stderr: this.#parts.cleanStderr(stderr.text),
      stdoutBytes: this.#bytes.stdout,
      stderrBytes: this.#bytes.stderr,
      stdoutCut: stdout.cutBytes,
      stderrCut: stderr.cutBytes,
    };
  }

  /** As it came. */
  rawStderr(): string {
    return this.#kept.stderr.text(this.#bytes.stderr).text;
  }

  watch(listener: (progress: RunProgress) => void): () => void {
    const throttle = new Throttle(TELL_EVERY_MS, listener);
    if (this.#phase !== 'ended') this.#listeners.add(throttle);
    return () => {
      throttle.stop();
      this.#listeners.delete(throttle);
    };
  }

  async cancel(): Promise<void> {
    this.abort(new HotcellError('CANCELLED', 'the run was cancelled'));
    await this.result;
  }

  abort(reason: HotcellError): void {
    this.#cancelling.abort(reason);
  }

  end(result: CodeResult): void {
    this.enter('ended', result.message ?? result.status);
    this.#settled.resolve(result);
    this.#listeners.clear();
  }
}
