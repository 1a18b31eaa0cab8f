import type { Cell } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError, toHotcellError } from '../core/errors.ts';
import { imageOf } from '../core/language.ts';
import type { Limits } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { planBoot, toCellName, waitUntilReady, type HotCell, type NamedLanguage } from './hot-cell.ts';

export interface SharedCellOptions {
  readonly driver: Driver;
  readonly language: NamedLanguage;
  readonly limits: Limits;
  readonly log: Log;
  /** Boots take CPU; this lets them have their turn. */
  inTurn<T>(boot: () => Promise<T>): Promise<T>;
}

/** An interpreter such as node has eleven threads; each counts as a process. */
const PROCESSES_PER_RUN = 16;
/** A cell whose workdir is fuller than this is not used any more: what runs leave there stays. */
const FULL = 0.5;

/** How many runs, waiting interpreters included, fit into one shared cell. */
export function sharedCapacity(limits: Limits): number {
  return Math.max(1, Math.floor(limits.processes / PROCESSES_PER_RUN));
}

/** One cell and who is in it. */
interface Home {
  readonly cell: Promise<Cell>;
  guests: number;
  /** An interpreter has booted in it. */
  proven: boolean;
  retired: boolean;
}

/**
 * The one long-lived cell of a language (strategy `shared`). The limits are those of the cell: its runs share them.
 * A cell that was lost, spoiled or filled is replaced; whoever is still in it stays to the end.
 */
export class SharedCell {
  readonly #options: SharedCellOptions;
  readonly #slots: Semaphore;
  #home: Home | undefined;
  readonly #leaving = new Set<Promise<void>>();

  constructor(options: SharedCellOptions) {
    this.#options = options;
    this.#slots = new Semaphore(sharedCapacity(options.limits));
  }

  /** Boots an interpreter in the cell, making the cell first if there is none; waits while the cell is full. */
  boot(): Promise<HotCell> {
    const booted = Promise.withResolvers<HotCell>();
    void this.#slots.run(async () => {
      const start = this.#options.inTurn(() => this.#start());
      start.then(booted.resolve, booted.reject);
      // The place is taken until the interpreter has ended, whatever it did meanwhile.
      await start.then((hot) => hot.main.ended).catch(() => {});
    });
    return booted.promise;
  }

  async #start(): Promise<HotCell> {
    const home = this.#enter();
    try {
      const hot = await this.#startIn(home);
      if (!hot.spoiled) return hot;
      // Given up by others while this one was booting.
      await hot.dispose();
    } catch (error) {
      this.#retire(home);
      this.#leave(home);
      const { code } = toHotcellError(error);
      // A cell that is gone, or where it worked before others filled or spoiled it, says nothing about the next one.
      if (code !== 'CELL_LOST' && !home.proven) throw error;
    }
    return this.#startInNew();
  }

  async #startInNew(): Promise<HotCell> {
    const home = this.#enter();
    try {
      return await this.#startIn(home);
    } catch (error) {
      this.#retire(home);
      this.#leave(home);
      throw error;
    }
  }

  async #startIn(home: Home): Promise<HotCell> {
    const { language } = this.#options;
    const cell = await home.cell;
    const { command, fileName } = planBoot(language.entry);
    const main = await cell.exec(command);
    await waitUntilReady(main, language);
    home.proven = true;
    void main.ended.then(async () => {
      const { diskShare } = await main.usage();
      if (diskShare !== undefined && diskShare > FULL) this.#retire(home);
      this.#leave(home);
    });
    return {
      cell,
      main,
      filePath: `${cell.workdir}/${fileName}`,
      bootUsage: await main.usage(),
      dispose: async () => {
        await main.kill('cancelled');
        await main.ended;
      },
      retire: () => this.#retire(home),
      get spoiled() {
        return home.retired;
      },
    };
  }

  #enter(): Home {
    this.#home ??= this.#open();
    this.#home.guests++;
    return this.#home;
  }

  #open(): Home {
    const { driver, language, limits } = this.#options;
    const cell = driver.create({
      name: toCellName(language.name),
      kind: 'run',
      limits,
      image: imageOf(language.entry),
    });
    const home: Home = { cell, guests: 0, proven: false, retired: false };
    cell
      .then(
        ({ gone }) => gone.then(() => this.#retire(home)),
        () => this.#retire(home),
      )
      .catch(() => {});
    return home;
  }

  #retire(home: Home): void {
    if (home.retired) return;
    home.retired = true;
    if (this.#home === home) this.#home = undefined;
    if (home.guests === 0) this.#remove(home);
  }

  #leave(home: Home): void {
    home.guests--;
    if (home.retired && home.guests === 0) this.#remove(home);
  }

  #remove(home: Home): void {
    const { log, language } = this.#options;
    const removal = home.cell.then(
      (cell) => cell.dispose(),
      () => {},
    );
    const settled = removal.catch((error: unknown) =>
      log.warn({ language: language.name, error: String(error) }, 'shared cell removal failed'),
    );
    this.#leaving.add(settled);
    void settled.finally(() => this.#leaving.delete(settled));
  }

  /** Removes the cell unless somebody is in it; the next boot makes a new one. */
  async rest(): Promise<boolean> {
    const home = this.#home;
    if (home === undefined || home.guests > 0) return false;
    this.#retire(home);
    await Promise.all(this.#leaving);
    return true;
  }

  /** Removes the cell with everybody in it. */
  async close(): Promise<void> {
    const home = this.#home;
    this.#home = undefined;
    const cell = await home?.cell.catch(() => undefined);
    await cell?.dispose().catch((error: unknown) => {
      throw new HotcellError('INTERNAL', 'shared cell removal failed', { cause: error });
    });
    await Promise.all(this.#leaving);
  }
}
