import { HotcellError } from '../core/errors.ts';
import { Turns } from '../core/turns.ts';

/** Lets one command in at a time; others wait in order, up to a bound, or are sent away. */
export class ExecQueue {
  readonly #most: number;
  readonly #turns = new Turns();

  constructor(most: number) {
    this.#most = most;
  }

  get isBusy(): boolean {
    return this.#turns.isBusy;
  }

  /** As `Turns.enter`. */
  enter(onBusy: 'wait' | 'reject', signal: AbortSignal): Promise<void> | undefined {
    const { isBusy, waiting } = this.#turns;
    if (isBusy && onBusy === 'reject')
      throw new HotcellError('SESSION_BUSY', 'another command is running in this session');
    if (isBusy && waiting >= this.#most)
      throw new HotcellError('SESSION_BUSY', `${waiting} commands wait in this session already`);
    return this.#turns.enter(signal);
  }

  leave(): void {
    this.#turns.leave();
  }
}
