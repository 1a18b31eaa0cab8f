import { toCancelError } from './errors.ts';

/** Lets one in at a time, or as many as there are places; others wait in order. How many may wait is up to whoever sends them here. */
export class Turns {
  readonly #places: number;
  readonly #waiting: (() => void)[] = [];
  #inside = 0;

  constructor(places = 1) {
    this.#places = places;
  }

  get isBusy(): boolean {
    return this.#inside >= this.#places;
  }

  get inside(): number {
    return this.#inside;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Undefined: the turn has come at once. Whoever has had a turn must `leave`. `signal` takes the waiting one out. */
  enter(signal: AbortSignal): Promise<void> | undefined {
    if (!this.isBusy) {
      this.#inside++;
      return undefined;
    }
    if (signal.aborted) throw toCancelError(signal);
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(toCancelError(signal));
      };
      this.#waiting.push(enter);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#inside--;
    else next();
  }
}
