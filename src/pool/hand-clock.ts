import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../core/clock.ts';

/** For tests: time goes on only when a test says so. */
export class HandClock implements Clock {
  #now = 0;
  readonly #timers = new Set<{ at: number; readonly intervalMs: number; task(): void }>();

  now(): number {
    return this.#now;
  }

  every(intervalMs: number, task: () => void): () => void {
    const timer = { at: this.#now + intervalMs, intervalMs, task };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get timers(): number {
    return this.#timers.size;
  }

  async advance(byMs: number): Promise<void> {
    const until = this.#now + byMs;
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.at <= until).toSorted((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#now = due.at;
      due.at += due.intervalMs;
      due.task();
      await nextTurn();
    }
    this.#now = until;
    await nextTurn();
  }
}
