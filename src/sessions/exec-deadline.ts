import type { Clock } from '../core/clock.ts';
import { LONGEST_TIME_MS } from '../core/setting-values.ts';

export interface DeadlineParts {
  readonly clock: Clock;
  /** Between asking for the end and enforcing it. */
  readonly graceMs: number;
  terminate(): void;
  kill(): void;
}

/** The time of one command: asks it to end, and ends it when it does not. */
export class ExecDeadline {
  readonly #parts: DeadlineParts;
  #cancel: (() => void) | undefined;
  #isReached = false;

  constructor(parts: DeadlineParts) {
    this.#parts = parts;
  }

  /** The command was asked to end. */
  get isReached(): boolean {
    return this.#isReached;
  }

  get isArmed(): boolean {
    return this.#cancel !== undefined;
  }

  /** Also for a deadline that has passed: a restart of the server, or a pause, may lie between. */
  arm(deadline: number, atLeastMs = 0): void {
    const { clock, graceMs } = this.#parts;
    this.stop();
    const wait = (until: number, task: () => void): void => {
      const delay = Math.max(atLeastMs, until - clock.now());
      this.#cancel = clock.after(Math.min(delay, LONGEST_TIME_MS), task);
    };
    wait(deadline, () => {
      this.#isReached = true;
      this.#parts.terminate();
      wait(deadline + graceMs, () => this.#parts.kill());
    });
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
