import { randomInt } from 'node:crypto';

/** Host ids that no distribution gives to users or containers, below what engines accept: pairs of two. */
const FIRST = 0x70000000;
const COUNT = 0x07fffffe;

/**
 * A different pair of host ids for every cell, so that what the kernel counts by user (pipes, inotify, queues, keys) is
 * not shared.
 */
export class UnusedIds {
  #next = randomInt(COUNT / 2) * 2;

  /** The first of two ids. */
  next(): number {
    const first = FIRST + this.#next;
    this.#next = (this.#next + 2) % COUNT;
    return first;
  }
}
