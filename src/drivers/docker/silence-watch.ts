/**
 * A deadline for the pauses of long work, not for the whole of it: a slow pull may take an hour, but not an hour
 * without a word.
 */
export class SilenceWatch implements Disposable {
  readonly ms: number;
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(ms: number) {
    this.ms = ms;
    this.#timer = setTimeout(() => this.#controller.abort(), ms);
  }

  /** Aborts after the silence. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Passes on what comes, and notes that something came. Ends with an error at the silence. */
  async *listen<T>(source: AsyncIterable<T>): AsyncGenerator<T> {
    const iterator = source[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await this.orSilence(iterator.next());
        if (next.done === true) return;
        this.#timer.refresh();
        yield next.value;
      }
    } finally {
      // Not awaited: a source that hangs would hang here too.
      void iterator.return?.().catch(() => {});
    }
  }

  /** The same for one promise, whether or not whoever made it heeds `signal`. */
  orSilence<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => reject(new Error(`nothing came for ${this.ms / 1000} s`));
      if (this.signal.aborted) giveUp();
      this.signal.addEventListener('abort', giveUp, { once: true });
      promise.finally(() => this.signal.removeEventListener('abort', giveUp)).then(resolve, reject);
    });
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
