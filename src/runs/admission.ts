import { HotcellError } from '../core/errors.ts';
import { Turns } from '../core/turns.ts';

/** Lets a bounded number of runs in, keeps a bounded number waiting in order, and sends the rest away. */
export class Admission {
  readonly #limits: { readonly running: number; readonly queue: number };
  readonly #turns: Turns;
  #averageMs = 100;

  constructor(limits: { readonly running: number; readonly queue: number }) {
    this.#limits = limits;
    this.#turns = new Turns(limits.running);
  }

  get inside(): number {
    return this.#turns.inside;
  }

  get waiting(): number {
    return this.#turns.waiting;
  }

  async run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    this.#requireRoom();
    await this.#turns.enter(signal);
    const startedAt = performance.now();
    try {
      return await task();
    } finally {
      this.#averageMs += (performance.now() - startedAt - this.#averageMs) / 8;
      this.#turns.leave();
    }
  }

  #requireRoom(): void {
    const { isBusy, inside, waiting } = this.#turns;
    if (!isBusy || waiting < this.#limits.queue) return;
    const seconds = Math.ceil((waiting / this.#limits.running) * (this.#averageMs / 1000));
    throw new HotcellError('TOO_BUSY', `${inside} runs are under way and ${waiting} wait already`, {
      retryAfterSeconds: Math.max(1, seconds),
    });
  }
}
