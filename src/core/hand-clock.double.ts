import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** For tests: time goes on only when a test says so. */
export class HandClock implements Clock {
  #now = Date.UTC(2030, 0, 2, 12);
  readonly #timers = new Set<{ at: number; readonly everyMs: number | undefined; task(): void }>();

  now(): number {
    return this.#now;
  }

  after(delayMs: number, task: () => void): () => void {
    return this.#add({ at: this.#now + delayMs, everyMs: undefined, task });
  }

  every(intervalMs: number, task: () => void): () => void {
    return this.#add({ at: this.#now + intervalMs, everyMs: intervalMs, task });
  }

  #add(timer: { at: number; readonly everyMs: number | undefined; task(): void }): () => void {
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get timers(): number {
    return this.#timers.size;
  }

  async advance(byMs: number): Promise<void> {
    const until = this.#now + byMs;
    for (;;) {
      const due = [...this.#timers].filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#now = due.at;
      if (due.everyMs === undefined) this.#timers.delete(due);
      else due.at += due.everyMs;
      due.task();
      await nextTurn();
    }
    this.#now = until;
    await nextTurn();
  }
}
