import type { CellImage } from '../core/cell.ts';
import { HotcellError } from '../core/errors.ts';
import type { HttpRule } from '../egress/cell-network.ts';
import { abortable } from '../core/abortable.ts';
import { BenchCell, type BenchCellParts } from './bench-cell.ts';
import type { CodeFolder } from './code-folder.ts';
import type { WorkbenchSite } from './options.ts';

export interface BenchCellsParts extends Pick<BenchCellParts, 'limits' | 'readBytes' | 'log'> {
  site(): Promise<WorkbenchSite>;
  code(): Promise<CodeFolder>;
}

/** `base`: the one for TypeScript; `latest`: that of the cell that was used last. */
export type WantedImage = CellImage | 'base' | 'latest';

export interface StartListener {
  onPhase(phase: 'image' | 'cell', message: string): void;
}

interface Entry {
  readonly starting: Promise<BenchCell>;
  readonly listeners: Set<StartListener>;
  /** Once it runs. */
  cell: BenchCell | undefined;
  /** Another one was lost, and nobody was told yet. */
  isReplacement: boolean;
}

/** The cells of one workbench: as a rule one; where cells are made from images, one for each that is needed. */
export class BenchCells {
  readonly #parts: BenchCellsParts;
  readonly #entries = new Map<string, Entry>();
  /** Also those that are gone, until nothing is left of them. */
  readonly #disposing = new Set<Promise<void>>();
  #latest: CellImage | undefined;
  /** Keys of cells that were lost: the next run that needs one of them is told that it is new. */
  readonly #lost = new Set<string>();
  readonly #closing = new AbortController();

  constructor(parts: BenchCellsParts) {
    this.#parts = parts;
  }

  /** A cell that lives, made if there is none; callers at the same time get the same one. */
  async get(image: WantedImage, listener: StartListener): Promise<BenchCell> {
    this.#requireOpen();
    const site = await this.#parts.site();
    this.#requireOpen();
    const base = site.images?.base ?? NO_IMAGE;
    const wanted = image === 'base' ? base : image === 'latest' ? (this.#latest ?? base) : image;
    const key = site.images === undefined ? '' : `${wanted.recipe ?? ''} ${wanted.name ?? ''}`;
    let entry = this.#entries.get(key);
    if (entry?.cell?.isLost === true) {
      this.discard(entry.cell);
      entry = undefined;
    }
    entry ??= this.#begin(key, wanted, site);
    this.#latest = wanted;
    entry.listeners.add(listener);
    try {
      return await entry.starting;
    } finally {
      entry.listeners.delete(listener);
    }
  }

  #begin(key: string, image: CellImage, site: WorkbenchSite): Entry {
    const listeners = new Set<StartListener>();
    const tell = (phase: 'image' | 'cell', message: string): void => {
      for (const listener of listeners) listener.onPhase(phase, message);
    };
    const starting = this.#start(image, site, tell);
    const entry: Entry = { starting, listeners, cell: undefined, isReplacement: this.#lost.delete(key) };
    this.#entries.set(key, entry);
    entry.starting.then(
      (cell) => (entry.cell = cell),
      () => this.#forget(entry),
    );
    return entry;
  }

  async #start(
    image: CellImage,
    site: WorkbenchSite,
    tell: (phase: 'image' | 'cell', message: string) => void,
  ): Promise<BenchCell> {
    // Not before whoever asked listens.
    await Promise.resolve();
    if (site.images !== undefined) {
      tell('image', 'looking for the image');
      // The image is worth having also when this workbench is not there any more.
      await abortable(
        site.images.ensure(image, (text) => tell('image', text)),
        this.#closing.signal,
      );
    }
    this.#requireOpen();
    tell('cell', 'starting a cell');
    return BenchCell.start({ ...this.#parts, site, code: await this.#parts.code(), image });
  }

  #requireOpen(): void {
    if (this.#closing.signal.aborted) throw this.#closing.signal.reason;
  }

  /** The cell is of no use any more; the next run gets another one. */
  discard(cell: BenchCell): void {
    for (const [key, entry] of this.#entries) {
      if (entry.cell !== cell) continue;
      this.#entries.delete(key);
      this.#lost.add(key);
    }
    const disposing = cell.dispose();
    this.#disposing.add(disposing);
    void disposing.finally(() => this.#disposing.delete(disposing));
  }

  #forget(entry: Entry): void {
    for (const [key, one] of this.#entries) if (one === entry) this.#entries.delete(key);
  }

  /** Says once whether this cell is there because another one was lost, with its files. */
  takeReplacement(cell: BenchCell): boolean {
    const entry = [...this.#entries.values()].find((one) => one.cell === cell);
    if (entry === undefined || !entry.isReplacement) return false;
    entry.isReplacement = false;
    return true;
  }

  setRules(rules: readonly HttpRule[]): void {
    for (const { cell } of this.#entries.values()) cell?.setRules(rules).catch(() => {});
  }

  /** Resolves when nothing is left of any of them. */
  async close(): Promise<void> {
    this.#closing.abort(new HotcellError('WORKBENCH_UNKNOWN', 'the session was closed'));
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    await Promise.all(
      entries.map(async ({ starting }) => (await starting.catch(() => undefined))?.dispose()),
    );
    await Promise.all(this.#disposing);
  }
}

const NO_IMAGE: CellImage = { name: undefined, recipe: undefined };
