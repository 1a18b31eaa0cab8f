import type { Clock } from '../core/clock.ts';
import type { CellFolder } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError, toCancelError, toHotcellError } from '../core/errors.ts';
import type { LanguageTable } from '../core/language.ts';
import type { Limits } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { bootHotCell, type HotCell, type NamedLanguage } from './hot-cell.ts';
import { LanguagePool } from './language-pool.ts';
import { SharedCell, sharedCapacity } from './shared-cell.ts';
import { NestedCells, type NestBounds } from './nested-cells.ts';
import type { Strategy } from './strategy.ts';

export interface HotPoolOptions {
  readonly driver: Driver;
  readonly strategy: Strategy;
  readonly languages: LanguageTable;
  readonly limits: Limits;
  /** Fresh cells are made inside cells with slots, where that can be. Undefined: each by the driver itself. */
  readonly nests?: NestBounds;
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

export interface Taken {
  readonly hot: HotCell;
  /** The interpreter was ready before it was asked for. */
  readonly warm: boolean;
  /** The limit of memory that is in force. */
  readonly memoryBytes: number;
  /** The taker is done with it. */
  readonly release: () => void;
}

/** What a cell of one's own must have. */
export interface OwnNeeds {
  readonly memoryBytes: number;
  /** That programs in it may read: cells that wait already have none. */
  readonly folders: readonly CellFolder[];
}

/** Taken for a waiting cell where nobody counts memory. */
const ASSUMED_CELL_BYTES = 16 * 1024 * 1024;
const RETRY_CHECK_MS = 1000;

/** Waiting cells of every language, within one budget. */
export class HotPool {
  readonly #options: HotPoolOptions;
  readonly #pools = new Map<string, LanguagePool>();
  readonly #shared = new Map<string, SharedCell>();
  readonly #nested = new Map<string, NestedCells>();
  readonly #ownBoots = new Set<Promise<unknown>>();
  readonly #boots: Semaphore;
  readonly #timers: (() => void)[] = [];

  constructor(options: HotPoolOptions) {
    this.#options = options;
    this.#boots = new Semaphore(options.booting);
    for (const [name, entry] of Object.entries(options.languages)) {
      const boot = this.#toBoot({ name, entry });
      this.#pools.set(
        name,
        new LanguagePool({
          language: name,
          size: options.strategy === 'fresh' ? options.size : Math.min(options.size, this.#mostWaiting()),
          boot,
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

  get strategy(): Strategy {
    return this.#options.strategy;
  }

  /** In a shared cell a run must not take all the places only to wait there. */
  #mostWaiting(): number {
    return Math.max(1, Math.floor(sharedCapacity(this.#options.limits) / 2));
  }

  #toBoot(language: NamedLanguage): () => Promise<HotCell> {
    const { driver, limits, log, strategy } = this.#options;
    const inTurn = <T>(task: () => Promise<T>): Promise<T> => this.#boots.run(task);
    const bootAlone = (): Promise<HotCell> => inTurn(() => bootHotCell(driver, language, limits));
    if (strategy === 'fresh') {
      const nested = this.#toNested(language, bootAlone);
      return nested === undefined ? bootAlone : () => nested.boot();
    }
    const shared = new SharedCell({ driver, language, limits, log, inTurn });
    this.#shared.set(language.name, shared);
    return () => shared.boot();
  }

  #toNested(language: NamedLanguage, bootAlone: () => Promise<HotCell>): NestedCells | undefined {
    const { clock, driver, limits, log, nests } = this.#options;
    if (nests === undefined || driver.openNest === undefined) return undefined;
    const { name } = language;
    const nested = new NestedCells({
      ...nests,
      driver,
      language,
      limits,
      clock,
      log,
      bootAlone,
      inTurn: (task) => this.#boots.run(task),
      isAwaited: () => this.#pool(name).isAwaited,
    });
    this.#nested.set(name, nested);
    return nested;
  }

  /** How fresh cells are made; a language that cannot have them nested speaks for all. */
  get walls(): { readonly way: 'nested' | 'runtime'; readonly problem: string | undefined } {
    const problem = [...this.#nested.values()].find((nested) => nested.problem !== undefined)?.problem;
    return { way: this.#nested.size > 0 && problem === undefined ? 'nested' : 'runtime', problem };
  }

  async take(language: string, signal: AbortSignal): Promise<Taken> {
    const pool = this.#pool(language);
    const { hot, warm } = await pool.take(signal);
    return { hot, warm, memoryBytes: this.#options.limits.memoryBytes, release: () => pool.release() };
  }

  /** A cell that nobody else is in, whatever the strategy, and whose memory is or can be limited as needed. */
  async takeOwn(language: string, needs: OwnNeeds, signal: AbortSignal): Promise<Taken> {
    const { limits, strategy } = this.#options;
    const { memoryBytes, folders } = needs;
    if (strategy === 'shared' || folders.length > 0) return this.#bootOwn(language, needs, signal);
    const taken = await this.take(language, signal);
    if (memoryBytes === limits.memoryBytes || taken.hot.cell.limitMemory !== undefined) return taken;
    taken.release();
    await taken.hot.dispose();
    return this.#bootOwn(language, needs, signal);
  }

  async #bootOwn(name: string, { memoryBytes, folders }: OwnNeeds, signal: AbortSignal): Promise<Taken> {
    this.#pool(name).touch();
    const { driver, languages } = this.#options;
    const entry = languages[name];
    if (entry === undefined) throw new HotcellError('LANGUAGE_UNKNOWN', `no language is called ${name}`);
    const limits = { ...this.#options.limits, memoryBytes };
    const boot = this.#boots.run(() => bootHotCell(driver, { name, entry }, limits, folders));
    this.#ownBoots.add(boot);
    void boot.catch(() => {}).finally(() => this.#ownBoots.delete(boot));
    const hot = await boot;
    if (signal.aborted) {
      await hot.dispose();
      throw toCancelError(signal);
    }
    return { hot, warm: false, memoryBytes, release: () => {} };
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
    for (const nested of this.#nested.values()) nested.tend();
    for (const pool of this.#pools.values()) pool.refill();
  }

  async #restIdle(): Promise<void> {
    const { clock, idleMs, log } = this.#options;
    for (const [language, pool] of this.#pools) {
      if (clock.now() - pool.lastUsedAt < idleMs) continue;
      const removed = await pool.rest();
      await this.#shared.get(language)?.rest();
      await this.#nested.get(language)?.rest();
      if (removed > 0) log.info({ language, removed }, 'idle cells removed');
    }
  }

  async close(): Promise<void> {
    for (const stop of this.#timers) stop();
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()));
    await Promise.all([...this.#shared.values(), ...this.#nested.values()].map((cells) => cells.close()));
    await Promise.allSettled(this.#ownBoots);
  }
}
