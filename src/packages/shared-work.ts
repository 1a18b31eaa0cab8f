import { toCancelError } from '../core/errors.ts';

interface Flight<T> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  waiting: number;
}

/** Work that several callers want at once is done once. It ends when none of them waits any more. */
export class SharedWork<T> {
  readonly #flights = new Map<string, Flight<T>>();

  async join(key: string, signal: AbortSignal, begin: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (signal.aborted) throw toCancelError(signal);
    const flight = this.#flights.get(key) ?? this.#begin(key, begin);
    flight.waiting++;
    const gone = Promise.withResolvers<never>();
    const leave = (): void => {
      flight.waiting--;
      if (flight.waiting === 0) {
        // A caller that comes now begins the work anew.
        this.#forget(key, flight);
        flight.controller.abort(signal.reason);
      }
      gone.reject(toCancelError(signal));
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await Promise.race([flight.result, gone.promise]);
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  #begin(key: string, begin: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const result = begin(controller.signal);
    const flight: Flight<T> = { result, controller, waiting: 0 };
    this.#flights.set(key, flight);
    const forget = (): void => this.#forget(key, flight);
    result.then(forget, forget);
    return flight;
  }

  #forget(key: string, flight: Flight<T>): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }
}
