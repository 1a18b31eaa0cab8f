import { HotcellError, toCancelError } from '../core/errors.ts';

/** Lets a bounded number of runs in, keeps a bounded number waiting in order, and sends the rest away. */
export class Admission {
  readonly #running: number;
  readonly #queue: number;
  readonly #waiting: (() => void)[] = [];
  #inside = 0;
  #averageMs = 100;

  constructor(limits: { running: number; queue: number }) {
    this.#running = limits.running;
    this.#queue = limits.queue;
  }

  get inside(): number {
    return this.#inside;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  async run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#enter(signal);
    const startedAt = performance.now();
    try {
      return await task();
    } finally {
      this.#averageMs += (performance.now() - startedAt - this.#averageMs) / 8;
      const next = this.#waiting.shift();
      if (next === undefined) this.#inside--;
      else next();
    }
  }

  #enter(signal: AbortSignal): Promise<void> {
    if (this.#inside < this.#running) {
      this.#inside++;
      return Promise.resolve();
    }
    if (this.#waiting.length >= this.#queue) {
      const seconds = Math.max(
        1,
        Math.ceil((this.#waiting.length / this.#running) * (this.#averageMs / 1000)),
      );
      throw new HotcellError(
        'TOO_BUSY',
        `${this.#inside} runs are under way and ${this.#waiting.length} wait already`,
        { retryAfterSeconds: seconds },
      );
    }
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(toCancelError(signal));
      };
      this.#waiting.push(enter);
      signal.addEventListener('abort', leave, { once: true });
    });
  }
}
