import { setTimeout as sleep } from 'node:timers/promises';
import type { HotcellError } from '../../core/errors.ts';

const EVERY_MS = 2000;

/** Remembers that the services are away and asks until they are back, so that nobody else has to wait to find out. */
export class ServicesWatch {
  readonly #ask: () => Promise<boolean>;
  readonly #onUp: () => void;
  readonly #everyMs: number;
  readonly #stop = new AbortController();
  #problem: HotcellError | undefined;

  /** `ask` says whether they are there; when all is well nobody asks. */
  constructor(ask: () => Promise<boolean>, onUp: () => void, everyMs = EVERY_MS) {
    this.#ask = ask;
    this.#onUp = onUp;
    this.#everyMs = everyMs;
  }

  get problem(): HotcellError | undefined {
    return this.#problem;
  }

  /** Somebody has found out. */
  note(problem: HotcellError): void {
    if (this.#stop.signal.aborted) return;
    const isKnown = this.#problem !== undefined;
    this.#problem = problem;
    if (!isKnown) void this.#untilBack();
  }

  async #untilBack(): Promise<void> {
    for (;;) {
      try {
        await sleep(this.#everyMs, undefined, { ref: false, signal: this.#stop.signal });
      } catch {
        return;
      }
      if (await this.#ask().catch(() => false)) break;
    }
    this.#problem = undefined;
    this.#onUp();
  }

  close(): void {
    this.#stop.abort();
  }
}
