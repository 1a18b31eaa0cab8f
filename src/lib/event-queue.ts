/**
 * An async iterable that a producer pushes into. `onFull` and `onDrained` let the producer stop its source,
 * so that a slow reader costs waiting, not memory.
 */
export class EventQueue<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  readonly #highWater: number;
  #waiting: { resolve: (result: IteratorResult<T>) => void; reject: (error: unknown) => void } | undefined;
  #ended = false;
  #error: unknown;
  #full = false;
  onFull: () => void = () => {};
  onDrained: () => void = () => {};

  constructor(highWater = 64) {
    this.#highWater = highWater;
  }

  push(item: T): void {
    if (this.#ended) return;
    if (this.#waiting !== undefined) {
      const { resolve } = this.#waiting;
      this.#waiting = undefined;
      resolve({ value: item, done: false });
      return;
    }
    this.#items.push(item);
    if (!this.#full && this.#items.length >= this.#highWater) {
      this.#full = true;
      this.onFull();
    }
  }

  /** No more items; what is queued is still read. */
  end(): void {
    this.#finish(undefined);
  }

  /** As `end`, but the reader gets `error` after the last queued item. */
  fail(error: Error): void {
    this.#finish(error);
  }

  #finish(error: Error | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    if (this.#waiting === undefined) return;
    const { resolve, reject } = this.#waiting;
    this.#waiting = undefined;
    if (error === undefined) resolve({ value: undefined, done: true });
    else reject(error);
  }

  /** One reader at a time; a second loop goes on where the first one stopped. */
  [Symbol.asyncIterator](): AsyncIterator<T> {
    return { next: () => this.#next() };
  }

  #next(): Promise<IteratorResult<T>> {
    const item = this.#items.shift();
    if (item !== undefined) {
      if (this.#full && this.#items.length === 0) {
        this.#full = false;
        this.onDrained();
      }
      return Promise.resolve({ value: item, done: false });
    }
    if (this.#ended) {
      if (this.#error !== undefined) return Promise.reject(this.#error);
      return Promise.resolve({ value: undefined, done: true });
    }
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }
}
