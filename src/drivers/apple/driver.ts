import type { CellSpec, LeftCell } from '../../core/cell.ts';
import type { DriverTraits, Probe } from '../../core/driver.ts';
import { HotcellError, toHotcellError } from '../../core/errors.ts';
import { EngineDriver } from '../engine/engine-driver.ts';
import { toRunWords } from './argv.ts';
import { AppleCell } from './cell.ts';
import { CliRefusal } from './cli-words.ts';
import { toContainerId } from './container-id.ts';
import { findOrphans, readUsage, removeContainer, removeOrphans } from './containers.ts';
import { toCellLabels } from './labels.ts';
import { probeApple } from './probe.ts';
import { openSite, type AppleOptions, type AppleSite } from './site.ts';
import { APPLE } from './kind.ts';

export type { AppleOptions } from './site.ts';

/** Cells from Apple's `container`: a virtual machine for each. */
export class AppleDriver extends EngineDriver<AppleCell, AppleSite> {
  readonly name = 'apple';
  readonly traits: DriverTraits = APPLE.traits;
  readonly #options: AppleOptions;

  constructor(options: AppleOptions) {
    super(options);
    this.#options = options;
  }

  async probe(): Promise<Probe> {
    return (await probeApple(this.#options)).probe;
  }

  protected openSite(): Promise<AppleSite> {
    return openSite(this.#options, () => void this.#onUp());
  }

  protected closeSite({ watch }: AppleSite): Promise<void> {
    return Promise.resolve(watch.close());
  }

  protected async start(site: AppleSite, spec: CellSpec, image: string): Promise<AppleCell> {
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
      remove: () => this.remove(site, id),
    });
    this.keep(id, cell);
    try {
      await cell.ready();
    } catch (error) {
      await cell.dispose();
      throw error;
    }
    return cell;
  }

  protected async removeContainer(site: AppleSite, id: string): Promise<void> {
    try {
      await removeContainer(site.cli, id);
    } catch (error) {
      throw this.#noted(toHotcellError(error));
    }
  }

  protected toCellError(error: unknown, { name }: CellSpec): HotcellError {
    return this.#noted(
      error instanceof CliRefusal
        ? new HotcellError('CELL_START_FAILED', `cell ${name} did not start: ${error.words}`, {
            cause: error,
          })
        : toHotcellError(error),
    );
  }

  /** Whoever finds the services away tells all others. */
  #noted(error: HotcellError): HotcellError {
    const watch = this.opened?.watch;
    if (error.code !== 'DRIVER_UNAVAILABLE' || watch === undefined) return error;
    const isNew = watch.problem === undefined;
    watch.note(error);
    if (isNew) this.#options.log.error({ problem: error.message }, 'container services away');
    return error;
  }

  async #onUp(): Promise<void> {
    this.#options.log.info({}, 'container services back');
    if (this.opened !== undefined) await this.removeLeft(this.opened);
  }

  async orphans(): Promise<LeftCell[]> {
    const { host: cli } = await probeApple(this.#options);
    return cli === undefined ? [] : findOrphans(cli);
  }

  async reclaim(): Promise<string[]> {
    const { host: cli } = await probeApple(this.#options);
    if (cli === undefined) return [];
    const isKnown = (id: string): boolean => this.cells.has(id);
    return removeOrphans(cli, { instance: this.opened?.instance, isKnown });
  }
}
