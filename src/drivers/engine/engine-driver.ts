import type { Cell, CellImage, CellSpec, CellSummary, LeftCell } from '../../core/cell.ts';
import type { Driver, DriverTraits, Probe } from '../../core/driver.ts';
import { HotcellError, messageOf } from '../../core/errors.ts';
import type { ImageShelf } from '../images/image-shelf.ts';
import type { DriverSurroundings } from '../kind.ts';
import { refuseSpec } from '../refuse-spec.ts';

export interface EngineCell extends Cell {
  /** The server goes, the cell stays. */
  leaveAlone?(): void;
}

/** What all cells of one process share in an engine. */
export interface EngineSite {
  readonly images: ImageShelf;
  readonly watch: {
    /** Why the engine cannot be used; undefined when it answered the last time. */
    readonly problem: HotcellError | undefined;
  };
}

const AGAIN_MS = 1000;

type EngineOptions = Pick<DriverSurroundings, 'log' | 'onProgress'>;

/** Cells that somebody else keeps for us, who may be away: containers of an engine, made from images. */
export abstract class EngineDriver<Made extends EngineCell, Site extends EngineSite> implements Driver {
  abstract readonly name: string;
  abstract readonly traits: DriverTraits;
  protected readonly cells = new Map<string, Made>();
  readonly #options: EngineOptions;
  readonly #creating = new Set<Promise<unknown>>();
  /** Containers that were not removed when asked; asked for again soon, and when the engine is back. */
  readonly #unremoved = new Set<string>();
  /** What images turned out to be, for receipts. */
  readonly #chosen = new Map<string, string>();
  #site: Promise<Site> | undefined;
  #opened: Site | undefined;
  #closed = false;
  #again: NodeJS.Timeout | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
  }

  abstract probe(): Promise<Probe>;
  abstract orphans(): Promise<LeftCell[]>;
  abstract reclaim(): Promise<string[]>;
  protected abstract openSite(): Promise<Site>;
  /** Precondition: the site knows of no cells any more. */
  protected abstract closeSite(site: Site): Promise<void>;
  /** Refuses what this one engine cannot give, before anything is pulled for it. */
  protected requireFit?(site: Site, spec: CellSpec): Promise<void>;
  protected abstract start(site: Site, spec: CellSpec, image: string): Promise<Made>;
  /** Removes a container, running or not; rejects when that cannot be done now. */
  protected abstract removeContainer(site: Site, id: string): Promise<void>;
  /** What went wrong, in words for whoever needs the cell. */
  protected abstract toCellError(error: unknown, spec: CellSpec, image: string): unknown;

  protected get opened(): Site | undefined {
    return this.#opened;
  }

  list(): CellSummary[] {
    return [...this.cells.values()].map(({ id, name }) => ({ id, name }));
  }

  problem(): string | undefined {
    return this.#opened?.watch.problem?.message;
  }

  imageName(image: CellImage): string {
    return this.#chosen.get(toKey(image)) ?? image.name ?? '';
  }

  create(spec: CellSpec): Promise<Cell> {
    const creation = this.#create(spec);
    this.#creating.add(creation);
    void creation.catch(() => {}).finally(() => this.#creating.delete(creation));
    return creation;
  }

  async #create(spec: CellSpec): Promise<Made> {
    if (this.#closed) throw new HotcellError('SHUTTING_DOWN', 'the driver is closed');
    refuseSpec(spec, this);
    if (spec.image === undefined) throw new HotcellError('INTERNAL', 'a cell of this driver needs an image');
    // Asking an engine that is known to be away would only make the caller wait.
    const problem = this.#opened?.watch.problem;
    if (problem !== undefined) throw problem;
    const site = await this.site();
    await this.requireFit?.(site, spec);
    let image = this.imageName(spec.image);
    try {
      image = await site.images.obtain(spec.image, (text) => this.#options.onProgress(text));
      this.#chosen.set(toKey(spec.image), image);
      return await this.start(site, spec, image);
    } catch (error) {
      throw this.toCellError(error, spec, image);
    }
  }

  /** Opened with the first use; one that failed is tried again with the next. */
  protected async site(): Promise<Site> {
    this.#site ??= this.openSite();
    try {
      this.#opened = await this.#site;
      return this.#opened;
    } catch (error) {
      this.#site = undefined;
      throw error;
    }
  }

  protected keep(id: string, cell: Made): Made {
    this.cells.set(id, cell);
    this.#options.log.debug({ cell: cell.id, name: cell.name }, 'cell started');
    void cell.gone.then(() => this.cells.delete(id));
    return cell;
  }

  protected async remove(site: Site, id: string): Promise<void> {
    try {
      await this.removeContainer(site, id);
      this.#unremoved.delete(id);
    } catch (error) {
      if (!this.#unremoved.has(id))
        this.#options.log.warn({ cell: id.slice(0, 12), error: messageOf(error) }, 'cell removal failed');
      this.#unremoved.add(id);
      // An engine may be away and back before anybody has noticed: nobody would ask again.
      this.#again ??= setTimeout(() => void this.#removeAgain(site), AGAIN_MS).unref();
      throw error;
    }
  }

  async #removeAgain(site: Site): Promise<void> {
    this.#again = undefined;
    // When it is known to be away, its return will be heard of.
    if (!this.#closed && site.watch.problem === undefined) await this.removeLeft(site);
  }

  protected async removeLeft(site: Site): Promise<void> {
    for (const id of this.#unremoved) await this.remove(site, id).catch(() => {});
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#again);
    await Promise.allSettled(this.#creating);
    const cells = [...this.cells.values()];
    for (const cell of cells) if (cell.lasting !== undefined) cell.leaveAlone?.();
    await Promise.all(cells.filter((cell) => cell.lasting === undefined).map((cell) => cell.dispose()));
    const site = await this.#site?.catch(() => undefined);
    if (site === undefined) return;
    await this.removeLeft(site);
    await this.closeSite(site);
    this.#site = undefined;
    this.#opened = undefined;
  }
}

function toKey(image: CellImage): string {
  return `${image.recipe ?? ''} ${image.name ?? ''}`;
}
