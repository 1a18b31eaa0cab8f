/** Passes on the newest of what it is offered, at most once in so many milliseconds. */
export class Throttle<T> {
  readonly #everyMs: number;
  readonly #listener: (value: T) => void;
  #last = -Infinity;
  #newest: { readonly value: T } | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(everyMs: number, listener: (value: T) => void) {
    this.#everyMs = everyMs;
    this.#listener = listener;
  }

  offer(value: T): void {
    this.#newest = { value };
    const wait = this.#last + this.#everyMs - performance.now();
    if (wait <= 0) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), wait).unref();
  }

  /** Passes on at once what still waits. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const newest = this.#newest;
    if (newest === undefined) return;
    this.#newest = undefined;
    this.#last = performance.now();
    this.#listener(newest.value);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#newest = undefined;
  }
}
