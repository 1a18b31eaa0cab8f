import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cell, CellImage, CellSpec, CellSummary } from '../../core/cell.ts';
import type { Driver, Probe } from '../../core/driver.ts';
import { HotcellError, messageOf } from '../../core/errors.ts';
import { deadInstances, defaultStateDirectory } from '../process/instance.ts';
import { removeBundle, writeBundle } from './bundle.ts';
import { OciCell } from './cell.ts';
import { CellCgroup, hierarchiesOf, removeCgroups } from './cgroup.ts';
import { Channel } from './channel.ts';
import { sealKit } from './fifo-kit.ts';
import { Keeper } from './keeper.ts';
import { probeOci, toHiddenMounts } from './probe.ts';
import { toContainerIds } from './runtime.ts';
import { killStrayRuntimes } from './stray-runtimes.ts';
import {
  cgroupPathOf,
  closeSite,
  isBroken,
  openSite,
  removeFolder,
  runtimeDirectoryOf,
  toCli,
  type OciOptions,
  type OciSite,
} from './site.ts';

export type { OciOptions } from './site.ts';

/** Cells from an OCI runtime, without any daemon. */
export class OciDriver implements Driver {
  readonly name = 'oci';
  readonly #options: OciOptions;
  readonly #cells = new Map<string, OciCell>();
  #site: Promise<OciSite> | undefined;
  #closed = false;

  constructor(options: OciOptions) {
    this.#options = options;
  }

  async probe(): Promise<Probe> {
    return (await probeOci(this.#options)).probe;
  }

  imageName(_image: CellImage, program: string): string {
    return `host:${program}`;
  }

  problem(): undefined {
    return undefined;
  }

  list(): CellSummary[] {
    return [...this.#cells.values()].map(({ id, name }) => ({ id, name }));
  }

  async create(spec: CellSpec): Promise<Cell> {
    if (this.#closed) throw new HotcellError('SHUTTING_DOWN', 'the driver is closed');
    const site = await this.#openSite();
    const id = randomBytes(6).toString('hex');
    try {
      return await this.#start(site, id, spec);
    } catch (error) {
      if (error instanceof HotcellError) throw error;
      throw new HotcellError('CELL_START_FAILED', `cell ${spec.name} did not start: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  #open(): Promise<OciSite> {
    const opening: Promise<OciSite> = openSite(this.#options, () => {
      opening.then((site) => this.#giveUp(site)).catch(() => {});
    });
    return opening;
  }

  /** A site that broke under our feet is left to the next clean-up, and a new one made. */
  async #openSite(): Promise<OciSite> {
    const opening = (this.#site ??= this.#open());
    try {
      const site = await opening;
      if (!isBroken(site)) return site;
    } catch (error) {
      if (this.#site === opening) this.#site = undefined;
      throw error;
    }
    if (this.#site === opening) this.#site = this.#open();
    return this.#openSite();
  }

  async #giveUp(site: OciSite): Promise<void> {
    this.#options.log.error(
      { cells: this.#cells.size },
      'the state folder vanished; starting over in a new one',
    );
    await Promise.all([...this.#cells.values()].map((cell) => cell.abandon()));
    await closeSite(site);
  }

  async #start(site: OciSite, id: string, spec: CellSpec): Promise<OciCell> {
    const { cgroups } = site.host;
    const identity = site.identities.next();
    const folder = join(site.instance.directory, 'cells', id);
    const cgroupPath = join(cgroupPathOf(site.instance.id), id);
    const kit = await site.kits.take(identity.hostId);
    let cgroup: CellCgroup | undefined;
    const cleanUp = async (): Promise<void> => {
      this.#cells.delete(id);
      if (site.cli.knows(id)) await site.cli.delete(id);
      cgroup?.close();
      await removeCgroups(site.hierarchies, cgroupPath);
      await removeBundle(folder);
      if (spec.main === undefined) await site.kits.discard(kit);
      else site.kits.giveBack(kit);
    };
    try {
      if (cgroups.version !== 'none') {
        cgroup = await CellCgroup.create(cgroups, cgroupPath, spec.limits, site.cli.traits);
      }
      await writeBundle(site, { spec, folder, identity, kit, cgroupPath });
    } catch (error) {
      await cleanUp();
      throw error;
    }
    const cell = new OciCell({
      id,
      spec,
      isolation: site.isolation,
      cli: site.cli,
      channel: new Channel(kit, spec.main === undefined ? ['out'] : ['out', 'err', 'status']),
      runtime: site.keeper.start(site.cli.toRunWords(id, folder), kit.log),
      cgroup,
      cleanUp,
    });
    this.#cells.set(id, cell);
    // A cell that cannot be cleaned up is left to the next start; it must not end the server.
    cell.gone.catch((error: unknown) =>
      this.#options.log.error({ cell: id, error: messageOf(error) }, 'clean-up failed'),
    );
    if (spec.main === undefined) {
      await cell.ready();
      await sealKit(kit);
    }
    return cell;
  }

  async reclaim(): Promise<string[]> {
    const dead = await deadInstances(this.#options.stateDirectory ?? (await defaultStateDirectory()));
    if (dead.length === 0) return [];
    const { host } = await probeOci(this.#options);
    if (host === undefined) return [];
    await using keeper = await Keeper.open(toHiddenMounts(host));
    const reclaimed: string[] = [];
    for (const instance of dead) {
      const cli = toCli(host, instance, keeper);
      killStrayRuntimes(runtimeDirectoryOf(instance));
      const entries = await readdir(runtimeDirectoryOf(instance)).catch(() => []);
      for (const id of toContainerIds(entries)) {
        // gVisor's delete waits in vain for a sandbox that it has to kill itself.
        await cli.kill(id);
        await cli.delete(id);
        reclaimed.push(id);
      }
      await removeCgroups(hierarchiesOf(host.cgroups), cgroupPathOf(instance.id));
      await removeFolder(instance.directory);
    }
    return reclaimed;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const site = await this.#site?.catch(() => undefined);
    await Promise.all([...this.#cells.values()].map((cell) => cell.dispose()));
    if (site !== undefined) await closeSite(site);
    this.#site = undefined;
  }
}
