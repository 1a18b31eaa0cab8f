import type { Volume, VolumeKeep, Volumes } from './volumes.ts';

/**
 * Who uses which volume. Sessions of the same project of the same user share one; it is released with the last of them.
 * What happens to one volume happens in order.
 */
export class VolumeHolds {
  readonly #volumes: Volumes;
  readonly #counts = new Map<string, number>();
  readonly #turns = new Map<string, Promise<unknown>>();
  #keepsAll = false;

  constructor(volumes: Volumes) {
    this.#volumes = volumes;
  }

  open(key: string, diskBytes: number): Promise<Volume> {
    return this.#inTurn(key, async () => {
      const volume = await this.#volumes.open(key, diskBytes);
      this.keep(key);
      return volume;
    });
  }

  /** One more session uses it. */
  keep(key: string): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** A session uses one of them, and nobody knows which. */
  keepAll(): void {
    this.#keepsAll = true;
  }

  release(key: string, keep: VolumeKeep): Promise<void> {
    return this.#inTurn(key, async () => {
      const left = (this.#counts.get(key) ?? 1) - 1;
      if (left > 0) {
        this.#counts.set(key, left);
        return;
      }
      this.#counts.delete(key);
      if (!this.#keepsAll) await this.#volumes.release(key, keep);
    });
  }

  /** After a restart: lets go of every volume that nobody uses. */
  async reclaim(): Promise<void> {
    if (!this.#keepsAll) await this.#volumes.reclaim(this.keys());
  }

  /** Keys in use. */
  keys(): ReadonlySet<string> {
    return new Set(this.#counts.keys());
  }

  #inTurn<T>(key: string, task: () => Promise<T>): Promise<T> {
    const done = (this.#turns.get(key) ?? Promise.resolve()).then(task);
    const settled = done.then(
      () => {},
      () => {},
    );
    this.#turns.set(key, settled);
    void settled.then(() => {
      if (this.#turns.get(key) === settled) this.#turns.delete(key);
    });
    return done;
  }
}
