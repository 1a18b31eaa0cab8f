import type { Clock } from '../core/clock.ts';
import type { Driver, Nest, NestedRun } from '../core/driver.ts';
import { HotcellError, messageOf, toHotcellError } from '../core/errors.ts';
import type { Language } from '../core/language.ts';
import type { Limits } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import {
  bootsFirst,
  planBoot,
  planLate,
  toCellName,
  waitUntilReady,
  type HotCell,
  type NamedLanguage,
} from './hot-cell.ts';

/** How long cells with slots are used, and how many slots each has. */
export interface NestBounds {
  readonly slots: number;
  /** Runs after which a new cell takes over: what its runs share, such as addresses, is shared by no more than these. */
  readonly runs: number;
  /** The same in time. */
  readonly ageMs: number;
}

export interface NestedCellsOptions extends NestBounds {
  readonly driver: Pick<Driver, 'openNest'>;
  readonly language: NamedLanguage;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly log: Log;
  /** Opening a cell takes CPU; this lets it have its turn. */
  readonly inTurn: <T>(task: () => Promise<T>) => Promise<T>;
  /** Does anybody wait for what boots? */
  readonly isAwaited: () => boolean;
  /** Where no such cells can be had. */
  bootAlone(): Promise<HotCell>;
}

const ATTEMPTS = 3;
/** Whoever waits longer than this for a slot is worth another cell. */
const PATIENCE_MS = 100;
/** A cell beside others that nobody has used for so long is given up. */
const SPARE_MS = 10_000;

/** One generation: a cell with slots, and which of them are free. */
interface Home {
  readonly nest: Nest;
  /** Where all of its runs have their code, if its interpreter forks them. */
  readonly fileName: string | undefined;
  readonly free: number[];
  readonly openedAt: number;
  usedAt: number;
  runs: number;
  /** Nobody new is sent there. */
  retired: boolean;
  lost: boolean;
  removed: boolean;
}

interface Seat {
  readonly home: Home;
  readonly slot: number;
}

/** Undefined: there will be none. */
type Given = (seat: Seat | undefined) => void;

/** A copy of an interpreter that has booted, one that boots behind its own walls, or walls that wait for the job. */
function planRun(
  entry: Language,
  fileName: string | undefined,
): { readonly fileName: string } & Omit<NestedRun, 'name'> {
  if (fileName !== undefined) return { mode: 'fork', fileName };
  return bootsFirst(entry) ? { mode: 'hot', ...planBoot(entry) } : { mode: 'late', ...planLate(entry) };
}

/** Fresh cells of one language that are made inside cells with slots, generation after generation. */
export class NestedCells {
  readonly #options: NestedCellsOptions;
  readonly #homes = new Set<Home>();
  readonly #waiting: { readonly give: Given; readonly fail: (error: HotcellError) => void }[] = [];
  readonly #leaving = new Set<Promise<void>>();
  readonly #opening = new Set<Promise<void>>();
  #forgetGrowth: (() => void) | undefined;
  #problem: string | undefined;
  /** One has been opened: what goes wrong later says nothing about this machine. */
  #proven = false;
  #closed = false;

  constructor(options: NestedCellsOptions) {
    this.#options = options;
  }

  /** Why each run has a cell of the driver's own instead; undefined where it need not, or nobody has looked yet. */
  get problem(): string | undefined {
    return this.#problem;
  }

  async boot(): Promise<HotCell> {
    for (let attempt = 1; ; attempt++) {
      const seat = await this.#takeSeat();
      if (seat === undefined) return this.#options.bootAlone();
      try {
        return await this.#bootIn(seat);
      } catch (error) {
        // What was lost with its neighbours says nothing about the next one.
        if (attempt === ATTEMPTS || toHotcellError(error).code !== 'CELL_LOST') throw error;
      }
    }
  }

  async #bootIn(seat: Seat): Promise<HotCell> {
    const { clock, language } = this.#options;
    const { home, slot } = seat;
    const { fileName, ...run } = planRun(language.entry, home.fileName);
    home.runs++;
    home.usedAt = clock.now();
    const cell = await home.nest
      .begin(slot, { name: toCellName(language.name), ...run })
      .catch((error: unknown) => {
        this.#retire(home);
        throw error;
      });
    const { main } = cell;
    if (main === undefined) throw new HotcellError('INTERNAL', 'a run without a program was made');
    void main.ended.then(() => this.#leave(seat));
    await waitUntilReady(main, language);
    return {
      cell,
      main,
      filePath: `${cell.workdir}/${fileName}`,
      bootUsage: await main.usage(),
      dispose: () => cell.dispose(),
      retire: () => this.#retire(home),
      get spoiled() {
        return home.lost;
      },
    };
  }

  #takeSeat(): Promise<Seat | undefined> {
    if (this.#problem !== undefined) return Promise.resolve(undefined);
    if (this.#closed) throw new HotcellError('SHUTTING_DOWN', 'the pool is closed');
    const seat = this.#freeSeat();
    if (seat !== undefined) return Promise.resolve(seat);
    return new Promise((give, fail) => {
      this.#waiting.push({ give, fail });
      if (this.#homes.size + this.#opening.size === 0) this.#open();
      else this.#growLater();
    });
  }

  #freeSeat(): Seat | undefined {
    for (const home of this.#homes) {
      const slot = home.free.pop();
      if (slot !== undefined) return { home, slot };
    }
    return undefined;
  }

  /** As many more cells as those who wait could fill, if somebody waits behind them. */
  #growLater(): void {
    const { clock, isAwaited, slots } = this.#options;
    this.#forgetGrowth ??= clock.after(PATIENCE_MS, () => {
      this.#forgetGrowth = undefined;
      if (this.#waiting.length === 0) return;
      const wanted = isAwaited() ? Math.ceil(this.#waiting.length / slots) : 0;
      while (this.#opening.size < wanted) this.#open();
      this.#growLater();
    });
  }

  #open(): void {
    const { driver, inTurn, language, limits, log, slots } = this.#options;
    const forker = language.entry.hot?.forks === true ? planBoot(language.entry) : undefined;
    const opening = inTurn(async () => {
      if (driver.openNest === undefined)
        throw new HotcellError('POLICY_UNENFORCEABLE', 'cells of this driver have no slots');
      const spec = { name: toCellName(language.name), limits, slots };
      return driver.openNest(forker === undefined ? spec : { ...spec, forker: forker.command });
    })
      .then(
        (nest) => this.#welcome(nest, forker?.fileName),
        (error: unknown) => this.#failed(toHotcellError(error)),
      )
      .catch((error: unknown) =>
        log.error({ language: language.name, error: messageOf(error) }, 'nest failed'),
      )
      .finally(() => this.#opening.delete(opening));
    this.#opening.add(opening);
  }

  #welcome(nest: Nest, fileName: string | undefined): void {
    const { clock, slots } = this.#options;
    this.#proven = true;
    const now = clock.now();
    const free = Array.from({ length: slots }, (_, slot) => slot);
    const home: Home = {
      nest,
      fileName,
      free,
      openedAt: now,
      usedAt: now,
      runs: 0,
      retired: false,
      lost: false,
      removed: false,
    };
    // One that was opened because others have become old takes over from them.
    for (const old of this.#homes) if (this.#isDue(old)) this.#retire(old);
    this.#homes.add(home);
    void nest.gone.then(() => this.#giveUp(home));
    if (this.#closed) this.#giveUp(home);
    this.#serve();
  }

  /** Decides for good that it will not work here, unless it is a failure that may pass. */
  #failed(error: HotcellError): void {
    const { language, log } = this.#options;
    const mayPass = this.#proven || error.code === 'DRIVER_UNAVAILABLE' || error.code === 'SHUTTING_DOWN';
    if (!mayPass) {
      this.#problem = error.message;
      log.warn({ language: language.name, error: error.message }, 'nested cells unavailable');
    }
    for (const { give, fail } of this.#waiting.splice(0)) {
      if (mayPass) fail(error);
      else give(undefined);
    }
  }

  #serve(): void {
    for (let seat; this.#waiting.length > 0 && (seat = this.#freeSeat()) !== undefined;)
      this.#waiting.shift()?.give(seat);
  }

  #leave({ home, slot }: Seat): void {
    home.free.push(slot);
    home.usedAt = this.#options.clock.now();
    if (home.retired) this.#removeIfEmpty(home);
    else if (this.#isDue(home)) this.#replace(home);
    this.#serve();
  }

  #isDue({ runs, openedAt, nest }: Home): boolean {
    const { ageMs, clock, runs: most } = this.#options;
    return runs >= most || nest.runsLeft < most || clock.now() - openedAt >= ageMs;
  }

  /** The next generation is opened while this one still serves. */
  #replace(home: Home): void {
    // SECURITY: identities are never given twice.
    if (home.nest.runsLeft <= this.#options.slots) this.#retire(home);
    if (this.#opening.size === 0) this.#open();
  }

  #retire(home: Home): void {
    home.retired = true;
    this.#homes.delete(home);
    this.#removeIfEmpty(home);
    if (this.#waiting.length > 0 && this.#homes.size + this.#opening.size === 0) this.#open();
  }

  /** With everybody who is in it. */
  #giveUp(home: Home): void {
    home.lost = true;
    this.#retire(home);
  }

  #removeIfEmpty(home: Home): void {
    const { language, log, slots } = this.#options;
    if (home.removed || (home.free.length < slots && !home.lost)) return;
    home.removed = true;
    const removal = home.nest.dispose().catch((error: unknown) => {
      log.warn({ language: language.name, error: messageOf(error) }, 'nest removal failed');
    });
    this.#leaving.add(removal);
    void removal.finally(() => this.#leaving.delete(removal));
  }

  /** Gives up cells that a burst needed and nobody needs any more. */
  tend(): void {
    const { clock, slots } = this.#options;
    for (const home of this.#homes) {
      const isSpare = home.free.length === slots && clock.now() - home.usedAt > SPARE_MS;
      if (isSpare && this.#homes.size > 1) this.#retire(home);
    }
  }

  /** Gives up all cells that nobody is in; the next boot opens a new one. */
  async rest(): Promise<void> {
    for (const home of this.#homes) if (home.free.length === this.#options.slots) this.#retire(home);
    await Promise.all(this.#leaving);
  }

  /** Removes the cells with everybody in them. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#forgetGrowth?.();
    await Promise.all(this.#opening);
    const closed = new HotcellError('SHUTTING_DOWN', 'the pool is closed');
    for (const { fail } of this.#waiting.splice(0)) fail(closed);
    for (const home of this.#homes) this.#giveUp(home);
    await Promise.all(this.#leaving);
  }
}
