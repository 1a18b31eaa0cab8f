import type { Log } from '../core/log.ts';
import { HotcellError, toCancelError, toHotcellError } from '../core/errors.ts';
import type { HotCell } from './hot-cell.ts';

export interface LanguagePoolOptions {
  readonly language: string;
  readonly size: number;
  /** Makes one more cell; waits for its turn where boots are limited. */
  boot(): Promise<HotCell>;
  /** May one more cell be kept waiting? Asked before each refill, never before a boot that somebody waits for. */
  mayKeep(): boolean;
  now(): number;
  readonly log: Log;
}

/** What a taker gets. */
interface Given {
  readonly hot: HotCell;
  /** The cell was ready before it was asked for. */
  readonly warm: boolean;
}

interface Waiter {
  resolve(given: Given): void;
  reject(error: HotcellError): void;
}

const FIRST_BACK_OFF_MS = 250;
const SHORTEST_LIFE_MS = 100;
const LONGEST_BACK_OFF_MS = 30_000;
const DRIVER_BACK_OFF_MS = 2000;

/** The booted cells of one language. A taker gets one at once, or waits for the next that becomes ready. */
export class LanguagePool {
  readonly #options: LanguagePoolOptions;
  readonly #ready: HotCell[] = [];
  readonly #waiting: Waiter[] = [];
  readonly #boots = new Set<Promise<unknown>>();
  #booting = 0;
  #taken = 0;
  #closed = false;
  /** Switched off after a long idle time; the next taker switches it on again. */
  #resting = false;
  /** The last boot succeeded, so the next one is expected to. */
  #serves = false;
  #failures = 0;
  #quickLosses = 0;
  #retryAt = 0;
  #problem: string | undefined;
  #lastUsedAt: number;
  #lastBootBytes: number | undefined;

  constructor(options: LanguagePoolOptions) {
    this.#options = options;
    this.#lastUsedAt = options.now();
  }

  get state(): 'running' | 'stopped' {
    // The last one was taken and the next is on its way: that is no reason to call anybody.
    const isRefilling = this.#booting > 0 && this.#serves && !this.#resting;
    return this.#ready.length + this.#taken > 0 || isRefilling ? 'running' : 'stopped';
  }

  /** Somebody waits for the next cell. */
  get isAwaited(): boolean {
    return this.#waiting.length > 0;
  }

  get ready(): number {
    return this.#ready.length;
  }

  /** Why the last boot failed, until one succeeds. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get lastUsedAt(): number {
    return this.#lastUsedAt;
  }

  /** What the waiting cells hold, and those that boot will: taken to be like the last one. */
  heldMemoryBytes(whenUnknown: number): number {
    const ready = this.#ready.reduce(
      (sum, { bootUsage }) => sum + (bootUsage.peakMemoryBytes ?? whenUnknown),
      0,
    );
    return ready + this.#booting * (this.#lastBootBytes ?? whenUnknown);
  }

  take(signal: AbortSignal): Promise<Given> {
    if (this.#closed) throw new HotcellError('SHUTTING_DOWN', 'the pool is closed');
    this.#lastUsedAt = this.#options.now();
    this.#resting = false;
    this.#dropSpoiled();
    const hot = this.#ready.shift();
    if (hot !== undefined) {
      this.#taken++;
      return Promise.resolve({ hot, warm: true });
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(toCancelError(signal));
      };
      const stay = (): void => signal.removeEventListener('abort', leave);
      const waiter: Waiter = {
        resolve: (given) => {
          stay();
          resolve(given);
        },
        reject: (error) => {
          stay();
          reject(error);
        },
      };
      this.#waiting.push(waiter);
      signal.addEventListener('abort', leave, { once: true });
      while (this.#booting < this.#waiting.length) void this.#boot();
    });
  }

  /** The language is in use, though not by a cell of this pool. */
  touch(): void {
    this.#lastUsedAt = this.#options.now();
  }

  /** The taker is done with the cell: only now refill, so that booting does not compete with the run. */
  release(): void {
    this.#taken--;
    this.#lastUsedAt = this.#options.now();
    this.#dropSpoiled();
    this.refill();
  }

  /** A run may have spoiled the place where others wait: they are given up before anybody gets them. */
  #dropSpoiled(): void {
    for (const hot of this.#ready.filter(({ spoiled }) => spoiled)) {
      this.#ready.splice(this.#ready.indexOf(hot), 1);
      hot.dispose().catch(() => {});
    }
  }

  /** Boots the first cell and waits for it; the others follow in the background. */
  async warmUp(): Promise<void> {
    const error = await this.#boot();
    if (error !== undefined) throw error;
    this.refill();
  }

  refill(): void {
    if (this.#closed || this.#resting || this.#options.now() < this.#retryAt) return;
    while (this.#ready.length + this.#booting < this.#options.size && this.#options.mayKeep())
      void this.#boot();
  }

  /** Resolves with the error if the boot failed; waiters and the pool have been served by then. */
  #boot(): Promise<HotcellError | undefined> {
    this.#booting++;
    const boot = this.#options.boot().then(
      async (hot) => {
        this.#booting--;
        if (!this.#place(hot)) await hot.dispose().catch(() => {});
        return undefined;
      },
      (thrown: unknown) => {
        this.#booting--;
        const error = toHotcellError(thrown);
        this.#failed(error);
        return error;
      },
    );
    this.#boots.add(boot);
    void boot.finally(() => this.#boots.delete(boot));
    return boot;
  }

  /** Gives a new cell to whoever waits, or keeps it; false when there is no place for it any more. */
  #place(hot: HotCell): boolean {
    this.#serves = true;
    this.#failures = 0;
    this.#retryAt = 0;
    this.#problem = undefined;
    this.#lastBootBytes = hot.bootUsage.peakMemoryBytes;
    const waiter = this.#waiting.shift();
    if (waiter !== undefined) {
      this.#taken++;
      waiter.resolve({ hot, warm: false });
      return true;
    }
    if (this.#closed || this.#resting || this.#ready.length >= this.#options.size) return false;
    this.#ready.push(hot);
    const readyAt = this.#options.now();
    void hot.main.ended.then(() => this.#lost(hot, readyAt));
    return true;
  }

  /** A waiting cell ended without having been asked to: replace it before anybody notices. */
  #lost(hot: HotCell, readyAt: number): void {
    const index = this.#ready.indexOf(hot);
    if (index === -1) return;
    this.#ready.splice(index, 1);
    const { language, log } = this.#options;
    log.warn({ language, cell: hot.cell.name }, 'waiting cell lost');
    // Cells that all die as soon as they are ready would otherwise be booted without end.
    this.#quickLosses = this.#options.now() - readyAt < SHORTEST_LIFE_MS ? this.#quickLosses + 1 : 0;
    if (this.#quickLosses > this.#options.size) this.#backOff();
    this.refill();
  }

  #failed(error: HotcellError): void {
    const { language, log } = this.#options;
    // Said once: what does not change while it is tried again and again would fill the log.
    log[this.#problem === error.message ? 'debug' : 'error'](
      { language, error: error.message },
      'a cell did not start',
    );
    this.#problem = error.message;
    // A driver that is away says so at once: asking costs nothing, and everybody waits for its return.
    this.#backOff(error.code === 'DRIVER_UNAVAILABLE' ? DRIVER_BACK_OFF_MS : LONGEST_BACK_OFF_MS);
    this.#waiting.shift()?.reject(error);
  }

  #backOff(longestMs = LONGEST_BACK_OFF_MS): void {
    this.#failures++;
    const wait = Math.min(longestMs, FIRST_BACK_OFF_MS * 2 ** Math.min(20, this.#failures - 1));
    this.#retryAt = this.#options.now() + wait;
  }

  /** Removes the waiting cells until somebody asks for one. */
  rest(): Promise<number> {
    this.#resting = true;
    this.#serves = false;
    return this.#disposeReady();
  }

  /** Also waits for boots that are under way, since what they make has to be removed, too. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#disposeReady();
    await Promise.all(this.#boots);
  }

  async #disposeReady(): Promise<number> {
    const cells = this.#ready.splice(0);
    await Promise.all(cells.map((hot) => hot.dispose()));
    return cells.length;
  }
}
