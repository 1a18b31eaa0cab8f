import { UnusedIds } from '../linux/unused-ids.ts';

/** For hosts without bounded file systems: the workspace is in the memory of the cell, and nothing outlives it. */
export class MemoryVolumes {
  readonly #ids = new UnusedIds();

  prepare(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  open(): Promise<{ folder: undefined; owner: number; fresh: boolean }> {
    return Promise.resolve({ folder: undefined, owner: this.#ids.next() + 1, fresh: true });
  }

  release(): Promise<void> {
    return Promise.resolve();
  }

  usedBytes(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  reclaim(): Promise<void> {
    return Promise.resolve();
  }
}
