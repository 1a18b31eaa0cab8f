import type { Cell, CellImage, CellSpec, CellSummary } from '../../core/cell.ts';
import type { Driver, Probe } from '../../core/driver.ts';
import { HotcellError, messageOf, toHotcellError } from '../../core/errors.ts';
import { refuseSpec } from '../refuse-spec.ts';
import { toRunWords } from './argv.ts';
import { AppleCell } from './cell.ts';
import { CliRefusal } from './cli-words.ts';
import { toContainerId } from './container-id.ts';
import { readUsage, removeContainer, removeOrphans } from './containers.ts';
import { toCellLabels } from './labels.ts';
import { probeApple } from './probe.ts';
import { openSite, type AppleOptions, type AppleSite } from './site.ts';
import { APPLE_TRAITS } from './traits.ts';

export type { AppleOptions } from './site.ts';

/** Cells from Apple's `container`: a virtual machine for each. */
export class AppleDriver implements Driver {
  readonly name = 'apple';
  readonly traits = APPLE_TRAITS;
  readonly #options: AppleOptions;
  readonly #cells = new Map<string, AppleCell>();
  readonly #creating = new Set<Promise<unknown>>();
  /** Containers that were not removed when asked; asked for again when the services are back. */
  readonly #unremoved = new Set<string>();
  /** What images turned out to be, for receipts. */
  readonly #chosen = new Map<string, string>();
  #site: Promise<AppleSite> | undefined;
  #opened: AppleSite | undefined;
  #closed = false;

  constructor(options: AppleOptions) {
    this.#options = options;
  }

  async probe(): Promise<Probe> {
    return (await probeApple(this.#options)).probe;
  }

  list(): CellSummary[] {
    return [...this.#cells.values()].map(({ id, name }) => ({ id, name }));
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

  async #create(spec: CellSpec): Promise<AppleCell> {
    if (this.#closed) throw new HotcellError('SHUTTING_DOWN', 'the driver is closed');
    refuseSpec(spec, this);
    if (spec.image === undefined) throw new HotcellError('INTERNAL', 'a cell of this driver needs an image');
    // Asking services that are known to be away would only make the caller wait.
    const problem = this.#opened?.watch.problem;
    if (problem !== undefined) throw problem;
    const site = await this.#openSite();
    try {
      const image = await site.images.obtain(spec.image, (text) => this.#options.onProgress(text));
      this.#chosen.set(toKey(spec.image), image);
      return await this.#start(site, spec, image);
    } catch (error) {
      throw this.#noted(site, toCreateError(error, spec.name));
    }
  }

  async #openSite(): Promise<AppleSite> {
    this.#site ??= openSite(this.#options, () => void this.#onUp());
    try {
      this.#opened = await this.#site;
      return this.#opened;
    } catch (error) {
      this.#site = undefined;
      throw error;
    }
  }

  async #start(site: AppleSite, spec: CellSpec, image: string): Promise<AppleCell> {
    const id = toContainerId(spec.name);
    const labels = toCellLabels(site.labels, spec);
    const words = toRunWords({ id, spec, image, labels, guest: site.guest });
    const cell = new AppleCell({
      id,
      spec,
      image,
      isolation: site.isolation,
      call: site.cli.start(words),
      usage: () => readUsage(site.cli, id),
      remove: () => this.#remove(site, id),
    });
    this.#cells.set(id, cell);
    void cell.gone.then(() => this.#cells.delete(id));
    try {
      await cell.ready();
    } catch (error) {
      await cell.dispose();
      throw error;
    }
    this.#options.log.debug({ cell: id, name: spec.name }, 'cell started');
    return cell;
  }

  async #remove(site: AppleSite, id: string): Promise<void> {
    try {
      await removeContainer(site.cli, id);
      this.#unremoved.delete(id);
    } catch (error) {
      this.#unremoved.add(id);
      this.#options.log.warn({ cell: id, error: messageOf(error) }, 'a cell was not removed');
      throw this.#noted(site, toHotcellError(error));
    }
  }

  /** Whoever finds the services away tells all others. */
  #noted(site: AppleSite, error: HotcellError): HotcellError {
    if (error.code !== 'DRIVER_UNAVAILABLE') return error;
    const isNew = site.watch.problem === undefined;
    site.watch.note(error);
    if (isNew) this.#options.log.error({ problem: error.message }, 'the services of container are away');
    return error;
  }

  async #onUp(): Promise<void> {
    this.#options.log.info({}, 'the services of container are back');
    const site = this.#opened;
    if (site === undefined) return;
    for (const id of this.#unremoved) await this.#remove(site, id).catch(() => {});
  }

  async reclaim(): Promise<string[]> {
    const { cli } = await probeApple(this.#options);
    if (cli === undefined) return [];
    const isKnown = (id: string): boolean => this.#cells.has(id);
    return removeOrphans(cli, { instance: this.#opened?.instance, isKnown });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#creating);
    await Promise.all([...this.#cells.values()].map((cell) => cell.dispose()));
    const site = await this.#site?.catch(() => undefined);
    if (site === undefined) return;
    site.watch.close();
    for (const id of this.#unremoved) await this.#remove(site, id).catch(() => {});
    this.#site = undefined;
    this.#opened = undefined;
  }
}

function toKey(image: CellImage): string {
  return `${image.recipe ?? ''} ${image.name ?? ''}`;
}

function toCreateError(error: unknown, cell: string): HotcellError {
  if (error instanceof CliRefusal)
    return new HotcellError('CELL_START_FAILED', `cell ${cell} did not start: ${error.words}`, {
      cause: error,
    });
  return toHotcellError(error);
}
