import { setTimeout as sleep } from 'node:timers/promises';
import { toHotcellError, type HotcellError } from '../../core/errors.ts';
import type { Engine } from './engine.ts';

const EVERY_MS = 2000;
const ANSWER_MS = 5000;
/** One missed answer may be a busy machine; two in a row are an engine that hangs. */
const MISSES = 2;

/** Asks the engine every few seconds whether it is there, so that nobody has to find out by waiting. */
export class EngineWatch {
  readonly #engine: Engine;
  readonly #onDown: (problem: HotcellError) => void;
  readonly #onUp: () => void;
  readonly #stop = new AbortController();
  #problem: HotcellError | undefined;
  #misses = 0;

  constructor(engine: Engine, listeners: { onDown(problem: HotcellError): void; onUp(): void }) {
    this.#engine = engine;
    this.#onDown = (problem) => listeners.onDown(problem);
    this.#onUp = () => listeners.onUp();
    void this.#watch();
  }

  /** Why the engine cannot be used; undefined when it answered the last time. */
  get problem(): HotcellError | undefined {
    return this.#problem;
  }

  async #watch(): Promise<void> {
    for (;;) {
      try {
        await sleep(EVERY_MS, undefined, { ref: false, signal: this.#stop.signal });
      } catch {
        return;
      }
      await this.check();
    }
  }

  /** Asks at once, for somebody who has a reason to doubt. */
  async check(): Promise<void> {
    try {
      await this.#engine.call('answer', (docker) => docker.ping(), ANSWER_MS);
      this.#misses = 0;
      if (this.#problem === undefined) return;
      this.#problem = undefined;
      this.#onUp();
    } catch (error) {
      const problem = toHotcellError(error);
      this.#misses++;
      // Without a cause nobody refused us: there was just no answer in time.
      if (this.#problem !== undefined || (problem.cause === undefined && this.#misses < MISSES)) return;
      if (this.#stop.signal.aborted) return;
      this.#problem = problem;
      this.#onDown(problem);
    }
  }

  close(): void {
    this.#stop.abort();
  }
}
