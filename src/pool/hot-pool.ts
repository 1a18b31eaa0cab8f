import type { Clock } from '../core/clock.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError, toHotcellError } from '../core/errors.ts';
import type { LanguageTable } from '../core/language.ts';
import type { Limits } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { bootHotCell } from './hot-cell.ts';
import { LanguagePool, type Taken } from './language-pool.ts';

export interface HotPoolOptions {
  readonly driver: Driver;
  readonly languages: LanguageTable;
  readonly limits: Limits;
  /** Cells kept ready per language. */
  readonly size: number;
  /** Cells that boot at the same time: the budget of CPU. */
  readonly booting: number;
  /** What all waiting cells may hold together: the budget of memory. */
  readonly memoryBytes: number;
  readonly idleMs: number;
  readonly idleCheckMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Taken for a waiting cell where nobody counts memory. */
const ASSUMED_CELL_BYTES = 16 * 1024 * 1024;
const RETRY_CHECK_MS = 1000;

/** Waiting cells of every language, within one budget. */
export class HotPool {
  readonly #options: HotPoolOptions;
  readonly #pools = new Map<string, LanguagePool>();
  readonly #boots: Semaphore;
  readonly #timers: (() => void)[] = [];

  constructor(options: HotPoolOptions) {
    this.#options = options;
    this.#boots = new Semaphore(options.booting);
    for (const [name, entry] of Object.entries(options.languages)) {
      this.#pools.set(
        name,
        new LanguagePool({
          language: name,
          size: options.size,
          boot: () => this.#boots.run(() => bootHotCell(options.driver, { name, entry }, options.limits)),
          mayKeep: () => this.#heldBytes() < options.memoryBytes,
          now: () => options.clock.now(),
          log: options.log,
        }),
      );
    }
  }

  /** Boots the first cell of every language and returns those that could not, with the reason. */
  async start(): Promise<Map<string, HotcellError>> {
    const { clock, idleCheckMs, size } = this.#options;
    const failed = new Map<string, HotcellError>();
    const warmUp = async (name: string, pool: LanguagePool): Promise<void> => {
      await pool.warmUp().catch((error: unknown) => failed.set(name, toHotcellError(error)));
    };
    if (size > 0) await Promise.all([...this.#pools].map(([name, pool]) => warmUp(name, pool)));
    this.#timers.push(
      clock.every(idleCheckMs, () => void this.#restIdle()),
      clock.every(RETRY_CHECK_MS, () => this.#refillAll()),
    );
    return failed;
  }

  take(language: string, signal: AbortSignal): Promise<Taken> {
    return this.#pool(language).take(signal);
  }

  release(language: string): void {
    this.#pool(language).release();
  }

  status(language: string): { state: 'running' | 'stopped'; ready: number; problem: string | undefined } {
    const { state, ready, problem } = this.#pool(language);
    return { state, ready, problem };
  }

  #pool(language: string): LanguagePool {
    const pool = this.#pools.get(language);
    if (pool === undefined) throw new HotcellError('LANGUAGE_UNKNOWN', `no language is called ${language}`);
    return pool;
  }

  #heldBytes(): number {
    return [...this.#pools.values()].reduce((sum, pool) => sum + pool.heldMemoryBytes(ASSUMED_CELL_BYTES), 0);
  }

  /** Boots that failed are tried again once their back-off is over, without a request having to ask for it. */
  #refillAll(): void {
    for (const pool of this.#pools.values()) pool.refill();
  }

  async #restIdle(): Promise<void> {
    const { clock, idleMs, log } = this.#options;
    for (const [language, pool] of this.#pools) {
      if (clock.now() - pool.lastUsedAt < idleMs) continue;
      const removed = await pool.rest();
      if (removed > 0) log.info({ language, removed }, 'idle cells removed');
    }
  }

  async close(): Promise<void> {
    for (const stop of this.#timers) stop();
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()));
  }
}
