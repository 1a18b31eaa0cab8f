import { HotcellError, toCancelError } from '../core/errors.ts';
import { Turns } from '../core/turns.ts';

/** Lets one run in at a time; others wait in order, up to a bound. */
export class RunQueue {
  readonly #most: number;
  readonly #turns = new Turns();

  constructor(most: number) {
    this.#most = most;
  }

  get isBusy(): boolean {
    return this.#turns.isBusy;
  }

  /** Throws TOO_BUSY when there is no room for one more. */
  requireRoom(): void {
    const { isBusy, waiting } = this.#turns;
    if (!isBusy || waiting < this.#most) return;
    throw new HotcellError('TOO_BUSY', `${waiting} runs wait in this session already`, {
      hint: 'Wait for one of them to end, or cancel it.',
    });
  }

  /** As `Turns.enter`. */
  enter(signal: AbortSignal): Promise<void> | undefined {
    if (signal.aborted) throw toCancelError(signal);
    return this.#turns.enter(signal);
  }

  leave(): void {
    this.#turns.leave();
  }
}
