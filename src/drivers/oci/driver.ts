import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cell, CellSpec, CellSummary, LeftCell } from '../../core/cell.ts';
import type { Driver, DriverTraits, LastingCells, Nest, NestSpec, Probe } from '../../core/driver.ts';
import { HotcellError, messageOf } from '../../core/errors.ts';
import { requireOwner } from '../linux/cell-owner.ts';
import {
  deadCells,
  deadInstances,
  defaultStateDirectory,
  lastingCells,
  lastingInstance,
} from '../process/instance.ts';
import { removeBundle, writeBundle } from './bundle.ts';
import { OciCell } from './cell.ts';
import { CellCgroup, removeCgroups } from './cgroup.ts';
import type { LastingLink } from '../agent/agent-link.ts';
import { Channel } from './channel.ts';
import { unsealKit, type FifoKit } from './fifo-kit.ts';
import type { HostIdentity } from './identity.ts';
import {
  cellFolderOf,
  noteKit,
  parseRecord,
  removeLasting,
  requireFolder,
  toRecord,
} from './lasting-cells.ts';
import { probeOci } from './probe.ts';
import { OciNest } from './nest.ts';
import { reclaimDead } from './reclaim.ts';
import {
  cgroupPathOf,
  closeSite,
  isBroken,
  leaveSite,
  openSite,
  type OciOptions,
  type OciSite,
} from './site.ts';
import { OCI } from './kind.ts';

export type { OciOptions } from './site.ts';

const MARKER_BYTES = 32;

interface MadeCell {
  readonly id: string;
  readonly spec: CellSpec;
  readonly kit: FifoKit;
}

function toIdentity({ identities }: OciSite, spec: CellSpec): HostIdentity {
  const owner = requireOwner(spec);
  if (owner !== undefined) return identities.as(owner);
  return spec.workspace === undefined ? identities.next() : identities.of(spec.workspace.owner);
}

/** Cells from an OCI runtime, without any daemon. */
export class OciDriver implements Driver {
  readonly name = 'oci';
  readonly traits: DriverTraits = OCI.traits;
  readonly #options: OciOptions;
  readonly #cells = new Map<string, OciCell>();
  #site: Promise<OciSite> | undefined;
  /** Where cells are that outlive us, by their store. */
  readonly #lasting = new Map<string, Promise<OciSite>>();
  #closed = false;

  constructor(options: OciOptions) {
    this.#options = options;
  }

  readonly lasting: LastingCells = {
    adopt: (record, spec) => this.#adopt(record, spec),
    list: async () => lastingCells(await this.#stateDirectory()),
    reclaim: (store, keep) => this.#reclaimLasting(store, keep),
  };

  async probe(): Promise<Probe> {
    return (await probeOci(this.#options)).probe;
  }

  list(): CellSummary[] {
    return [...this.#cells.values()].map(({ id, name }) => ({ id, name }));
  }

  async create(spec: CellSpec): Promise<Cell> {
    if (this.#closed) throw new HotcellError('SHUTTING_DOWN', 'the driver is closed');
    const site = await (spec.lasting === undefined
      ? this.#openSite()
      : this.#openLasting(spec.lasting.store));
    await site.keeper.revive();
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

  async openNest(spec: NestSpec): Promise<Nest> {
    if (this.#closed) throw new HotcellError('SHUTTING_DOWN', 'the driver is closed');
    const site = await this.#openSite();
    await site.keeper.revive();
    const id = randomBytes(6).toString('hex');
    return OciNest.open(site, spec, (outer) =>
      this.#start(site, id, { ...outer, name: spec.name }, { isNest: true }),
    );
  }

  async #adopt(record: string, spec: CellSpec): Promise<Cell> {
    if (spec.lasting === undefined) throw new HotcellError('INTERNAL', 'only cells that last can be adopted');
    const site = await this.#openLasting(spec.lasting.store);
    const { id, kit: kitName, marker } = parseRecord(record);
    requireFolder(cellFolderOf(site, id), spec.name);
    // Whoever is taken over runs, whatever it did before: a frozen agent would not answer.
    await site.cli.resume(id);
    const kit = site.kits.reopen(kitName);
    await unsealKit(kit);
    const cell = this.#watch(
      site,
      { id, spec, kit },
      { marker: Buffer.from(marker, 'base64'), adopted: true },
    );
    await cell.seal();
    await cell.ready();
    return cell;
  }

  async #reclaimLasting(store: string, keep: ReadonlySet<string>): Promise<string[]> {
    const { directory } = lastingInstance(await this.#stateDirectory(), store);
    if (!existsSync(directory)) return [];
    const { host } = await probeOci(this.#options);
    return host === undefined ? [] : removeLasting(await this.#openLasting(store), keep, this.#options.log);
  }

  #openLasting(store: string): Promise<OciSite> {
    const opening = this.#lasting.get(store) ?? openSite(this.#options, () => {}, store);
    this.#lasting.set(store, opening);
    opening.catch(() => this.#lasting.delete(store));
    return opening;
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
    this.#options.log.error({ cells: this.#cells.size }, 'state folder lost');
    const cells = [...this.#cells.values()].filter((cell) => cell.lasting === undefined);
    await Promise.all(cells.map((cell) => cell.abandon()));
    await closeSite(site, this.#options.log);
  }

  async #start(
    site: OciSite,
    id: string,
    spec: CellSpec,
    { isNest }: { readonly isNest: boolean } = { isNest: false },
  ): Promise<OciCell> {
    const identity = isNest ? site.identities.range() : toIdentity(site, spec);
    const folder = cellFolderOf(site, id);
    const cgroupPath = join(cgroupPathOf(site.instance.id), id);
    const kit = await site.kits.take(identity.host);
    try {
      const { cgroups } = site.host;
      if (cgroups.version !== 'none')
        await CellCgroup.create(cgroups, cgroupPath, spec.limits, site.cli.traits);
      await writeBundle(site, { spec, folder, identity, kit, cgroupPath, isNest });
      if (spec.lasting !== undefined) await noteKit(folder, kit);
    } catch (error) {
      await this.#cleanUp(site, { id, spec, kit });
      throw error;
    }
    const marker = spec.lasting === undefined ? undefined : randomBytes(MARKER_BYTES);
    const cell = this.#watch(
      site,
      { id, spec, kit },
      marker === undefined ? undefined : { marker, adopted: false },
    );
    // Whoever has slots is asked for them first.
    if (spec.main === undefined && !isNest) {
      await cell.ready();
      await cell.seal();
    }
    return cell;
  }

  /** Our side of a cell; starts it unless another server has. */
  #watch(site: OciSite, made: MadeCell, lasting: LastingLink | undefined): OciCell {
    const { id, spec, kit } = made;
    const { cgroups } = site.host;
    const cgroup =
      cgroups.version === 'none'
        ? undefined
        : CellCgroup.adopt(cgroups, join(cgroupPathOf(site.instance.id), id), spec.limits, site.cli.traits);
    const channel = new Channel(kit, spec.main === undefined ? ['out'] : ['out', 'err', 'status']);
    const shared = spec.folders?.some(({ writable }) => writable) === true;
    const runtime =
      lasting?.adopted === true
        ? site.keeper.follow(kit.log)
        : site.keeper.start(site.cli.toRunWords(id, cellFolderOf(site, id), { shared }), kit.log);
    if (lasting?.adopted === true) {
      // Runtime and agent may be gone, and once the FIFOs are sealed nobody could be that writer any more.
      runtime.touch();
      channel.touchReaders();
    }
    const cell = new OciCell({
      id,
      spec,
      isolation: site.isolation,
      cli: site.cli,
      channel,
      runtime,
      cgroup,
      cleanUp: () => this.#cleanUp(site, made, cgroup),
      ...(lasting === undefined
        ? {}
        : { lasting: { ...lasting, record: toRecord(id, kit, lasting.marker) } }),
    });
    this.#cells.set(id, cell);
    return cell;
  }

  /** What cannot be removed is left to the end of the site or to the next start: it must not end the server. */
  async #cleanUp(site: OciSite, { id, spec, kit }: MadeCell, cgroup?: CellCgroup): Promise<void> {
    this.#cells.delete(id);
    try {
      if (site.cli.knows(id)) await site.cli.delete(id);
      cgroup?.close();
      await removeCgroups(site.hierarchies, join(cgroupPathOf(site.instance.id), id));
      await removeBundle(cellFolderOf(site, id));
      if (spec.main === undefined) await site.kits.discard(kit);
      else site.kits.giveBack(kit);
    } catch (error) {
      this.#options.log.error({ cell: id, name: spec.name, error: messageOf(error) }, 'cell removal failed');
    }
  }

  async #stateDirectory(): Promise<string> {
    return this.#options.stateDirectory ?? defaultStateDirectory();
  }

  async orphans(): Promise<LeftCell[]> {
    return deadCells(await this.#stateDirectory());
  }

  async reclaim(): Promise<string[]> {
    const dead = await deadInstances(await this.#stateDirectory());
    if (dead.length === 0) return [];
    const { host } = await probeOci(this.#options);
    if (host === undefined) return [];
    return reclaimDead(host, dead, this.#options.log);
  }

  /** With its last cell the place of lasting cells goes, too. */
  async #closeLasting(site: OciSite): Promise<void> {
    const cells = await readdir(join(site.instance.directory, 'cells')).catch(() => []);
    await (cells.length > 0 ? leaveSite(site) : closeSite(site, this.#options.log));
  }

  /** False for one that cannot be ended now: it ends without our side of it, and the next start removes the rest. */
  async #end(cell: OciCell): Promise<boolean> {
    try {
      await cell.dispose();
      return true;
    } catch (error) {
      const { id, name } = cell;
      this.#options.log.error({ cell: id, name, error: messageOf(error) }, 'cell removal failed');
      cell.leaveAlone();
      return false;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const site = await this.#site?.catch(() => undefined);
    const cells = [...this.#cells.values()];
    for (const cell of cells) if (cell.lasting !== undefined) cell.leaveAlone();
    const own = cells.filter((cell) => cell.lasting === undefined);
    const ended = await Promise.all(own.map((cell) => this.#end(cell)));
    if (site !== undefined)
      await (ended.every(Boolean) ? closeSite(site, this.#options.log) : leaveSite(site));
    this.#site = undefined;
    for (const opening of this.#lasting.values()) await this.#closeLasting(await opening);
    this.#lasting.clear();
  }
}
