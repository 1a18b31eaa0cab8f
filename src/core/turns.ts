import { toCancelError } from './errors.ts';

/** Lets one in at a time; others wait in order. How many may wait is up to whoever sends them here. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #isBusy = false;

  get isBusy(): boolean {
    return this.#isBusy;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Undefined: the turn has come at once. Whoever has had a turn must `leave`. `signal` takes the waiting one out. */
  enter(signal: AbortSignal): Promise<void> | undefined {
    if (!this.#isBusy) {
      this.#isBusy = true;
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
    if (next === undefined) this.#isBusy = false;
    else next();
  }
}
