import { randomInt } from 'node:crypto';

/** Host ids that no distribution gives to users or containers, below what engines accept. */
const FIRST = 0x70000000;
const COUNT = 0x07fffffe;

/**
 * Different host ids for every cell, so that what the kernel counts by user (pipes, inotify, queues, keys) is not shared.
 */
export class UnusedIds {
  #next = randomInt(COUNT / 2) * 2;

  /** The first of so many ids in a row. */
  next(size = 2): number {
    if (this.#next + size > COUNT) this.#next = 0;
    const first = FIRST + this.#next;
    this.#next += size;
    return first;
  }
}
