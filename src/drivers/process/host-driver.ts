import { randomBytes } from 'node:crypto';
import { chmod, mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cell, CellSpec, CellSummary, LeftCell, PathsInCell } from '../../core/cell.ts';
import type { Driver, DriverTraits, Probe } from '../../core/driver.ts';
import type { DriverSurroundings } from '../kind.ts';
import { deadCells, deadInstances, defaultStateDirectory, openInstance, type Instance } from './instance.ts';

export type HostDriverOptions = Pick<DriverSurroundings, 'stateDirectory' | 'guest' | 'tools' | 'weaker'>;

/** Where programs of the host are, beside the tools. */
export const PROGRAM_FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin'];

/** What all cells of one process share: made with the first cell, removed after the last. */
export interface HostSite {
  readonly instance: Instance;
  /** Folder with the tools. */
  readonly bin: string;
}

/** The folder of one cell, and the names that requests have for what is in it. */
export interface HostCellFolder {
  readonly id: string;
  readonly directory: string;
  readonly workdir: string;
  readonly places: PathsInCell;
  /** Of every command. */
  readonly variables: { readonly PATH: string; readonly HOME: string; readonly LANG: string };
}

/** Cells that are processes and a folder of this host, in a state directory of their own. */
export abstract class HostDriver<Made extends Cell> implements Driver {
  abstract readonly name: string;
  abstract readonly traits: DriverTraits;
  protected readonly options: HostDriverOptions;
  readonly #cells = new Map<string, Made>();
  #opening: Promise<HostSite> | undefined;

  constructor(options: HostDriverOptions) {
    this.options = options;
  }

  abstract probe(): Promise<Probe>;
  abstract create(spec: CellSpec): Promise<Cell>;
  /** Ends what a server that is dead left running. */
  protected abstract endLeft(instance: Instance): Promise<void>;

  list(): CellSummary[] {
    return [...this.#cells.values()].map(({ id, name }) => ({ id, name }));
  }

  protected site(): Promise<HostSite> {
    const opening = (this.#opening ??= this.#open());
    opening.catch(() => (this.#opening = undefined));
    return opening;
  }

  async #open(): Promise<HostSite> {
    const instance = await openInstance(await this.#stateDirectory());
    const bin = join(instance.directory, 'bin');
    await mkdir(bin);
    await chmod(bin, 0o755);
    for (const tool of this.options.tools) await symlink(tool.path, join(bin, tool.name));
    return { instance, bin };
  }

  async #stateDirectory(): Promise<string> {
    return `${this.options.stateDirectory ?? (await defaultStateDirectory())}-${this.name}`;
  }

  protected async makeCellFolder(
    { instance, bin }: HostSite,
    { folders = [] }: CellSpec,
  ): Promise<HostCellFolder> {
    const id = randomBytes(6).toString('hex');
    const directory = join(instance.directory, 'cells', id);
    const workdir = join(directory, 'work');
    await mkdir(workdir, { recursive: true, mode: 0o711 });
    const own = Object.fromEntries(folders.map(({ name, folder }) => [name, folder]));
    return {
      id,
      directory,
      workdir,
      places: { workdir, guest: this.options.guest, tools: bin, ...own },
      variables: { PATH: [bin, ...PROGRAM_FOLDERS].join(':'), HOME: workdir, LANG: 'C.UTF-8' },
    };
  }

  protected keep(cell: Made): Made {
    this.#cells.set(cell.id, cell);
    return cell;
  }

  protected async removeCellFolder({ id, directory }: HostCellFolder): Promise<void> {
    this.#cells.delete(id);
    await removeFolder(directory);
  }

  async orphans(): Promise<LeftCell[]> {
    return deadCells(await this.#stateDirectory());
  }

  async reclaim(): Promise<string[]> {
    const dead = await deadInstances(await this.#stateDirectory());
    for (const instance of dead) {
      await this.endLeft(instance);
      await removeFolder(instance.directory);
    }
    return dead.map(({ id }) => id);
  }

  async close(): Promise<void> {
    const site = await this.#opening?.catch(() => undefined);
    if (site === undefined) return;
    await Promise.all([...this.#cells.values()].map((cell) => cell.dispose()));
    await removeFolder(site.instance.directory);
    this.#opening = undefined;
  }
}

/** What has just been killed may still write there. */
async function removeFolder(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
}
