import { randomBytes } from 'node:crypto';
import type { Container } from 'dockerode';
import type { Cell, CellSpec, LeftCell } from '../../core/cell.ts';
import type { DriverTraits, LastingCells, Probe } from '../../core/driver.ts';
import type { HotcellError } from '../../core/errors.ts';
import type { LastingLink } from '../agent/agent-link.ts';
import { EngineDriver } from '../engine/engine-driver.ts';
import { requireHost } from '../probed.ts';
import { attach } from './attach.ts';
import { DockerCell, type DockerCellParts } from './cell.ts';
import {
  findOrphans,
  readUsage,
  removeContainer,
  removeOrphans,
  toCellError,
  wasOutOfMemory,
} from './containers.ts';
import { isNameTaken, toOtherName } from './container-name.ts';
import { toCreateBody } from './create-body.ts';
import { makeGuestVolume } from './guest-volume.ts';
import { requireHostFolders } from './host-folders.ts';
import {
  lastingVolumeName,
  listLasting,
  parseRecord,
  removeLasting,
  removeUnusedVolumes,
  requireRunning,
  toStoreLabels,
  type LastingRecord,
} from './lasting.ts';
import { probeDocker } from './probe.ts';
import { isRefusal } from './engine.ts';
import { closeSite, openSite, toUser, wireDirectory, type DockerOptions, type DockerSite } from './site.ts';
import { Wire, removeDeadWires } from './wire.ts';
import { DOCKER } from './kind.ts';

export type { DockerOptions } from './site.ts';

const NAME_ATTEMPTS = 5;
const MARKER_BYTES = 32;

/** Cells from a Docker engine, or from Podman, which speaks the same language. */
export class DockerDriver extends EngineDriver<DockerCell, DockerSite> {
  readonly name = 'docker';
  readonly traits: DriverTraits;
  readonly lasting: LastingCells = {
    adopt: (record, spec) => this.#adopt(record, spec),
    list: async () => {
      const { host } = requireHost(await probeDocker(this.#options));
      return listLasting(host.engine);
    },
    reclaim: (store, keep) => this.#reclaimLasting(store, keep),
  };
  readonly #options: DockerOptions;
  /** With the guest files of cells that outlive us, by name. */
  readonly #lastingVolumes = new Map<string, Promise<void>>();
  /** Whose cells, that outlive us, we have had. */
  readonly #stores = new Set<string>();

  constructor(options: DockerOptions) {
    super(options);
    this.#options = options;
    this.traits = { ...DOCKER.traits, hostFolders: options.endpoint.local };
  }

  async probe(): Promise<Probe> {
    return (await probeDocker(this.#options)).probe;
  }

  async #adopt(record: string, spec: CellSpec): Promise<Cell> {
    const site = await this.site();
    const { engine } = site.host;
    const { id, name, marker } = parseRecord(record);
    await requireRunning(engine, id, name);
    const stream = await attach(engine, id);
    const cell = this.#watch(
      site,
      { id, name, spec, stream, image: '' },
      {
        marker: Buffer.from(marker, 'base64'),
        adopted: true,
      },
    );
    await cell.ready();
    return cell;
  }

  async #reclaimLasting(store: string, keep: ReadonlySet<string>): Promise<string[]> {
    const { host } = await probeDocker(this.#options);
    return host === undefined ? [] : removeLasting(host.engine, store, keep);
  }

  async #guestVolume(site: DockerSite, { lasting }: CellSpec, image: string): Promise<string> {
    if (lasting === undefined) return site.guestVolume(image);
    const { guest } = this.#options;
    const name = await lastingVolumeName(lasting.store, guest);
    const making =
      this.#lastingVolumes.get(name) ??
      makeGuestVolume(site.host.engine, { name, labels: toStoreLabels(lasting.store), image, guest });
    this.#lastingVolumes.set(name, making);
    await making.catch((error: unknown) => {
      this.#lastingVolumes.delete(name);
      throw error;
    });
    return name;
  }

  protected openSite(): Promise<DockerSite> {
    return openSite(this.#options, {
      onDown: (problem) => this.#onDown(problem),
      onUp: () => void this.#onUp(),
    });
  }

  protected override requireFit(site: DockerSite, spec: CellSpec): Promise<void> {
    const { local } = this.#options.endpoint;
    return requireHostFolders(spec, { local, mapsUsers: site.host.mapsUsers });
  }

  protected toCellError(error: unknown, { name }: CellSpec, image: string): unknown {
    return toCellError(error, name, image);
  }

  protected async start(site: DockerSite, spec: CellSpec, image: string): Promise<DockerCell> {
    const volume = await this.#guestVolume(site, spec, image);
    await using wire = await makeWire(site, spec);
    const parts = { image, volume, wire };
    const { engine } = site.host;
    let id: string | undefined;
    try {
      const { container, name } = await this.#make(site, spec, parts);
      id = container.id;
      const stream = await attach(engine, id);
      try {
        await engine.call('start a container', () => container.start());
      } catch (error) {
        stream.destroy();
        throw error;
      }
      const lasting =
        spec.lasting === undefined ? undefined : { marker: randomBytes(MARKER_BYTES), adopted: false };
      const cell = this.#watch(site, { id, name, spec, stream, wire, image }, lasting);
      if (spec.main === undefined || wire !== undefined) await cell.ready();
      return cell;
    } catch (error) {
      wire?.close();
      if (id !== undefined) await this.remove(site, id).catch(() => {});
      throw error;
    }
  }

  /** Our side of a container that runs. */
  #watch(site: DockerSite, made: MadeCell, lasting: LastingLink | undefined): DockerCell {
    const { engine } = site.host;
    const { id, name, spec } = made;
    if (spec.lasting !== undefined) this.#stores.add(spec.lasting.store);
    const act = (what: string, action: (container: Container) => Promise<unknown>) => async () => {
      try {
        await engine.call(what, (docker) => action(docker.getContainer(id)));
      } catch (error) {
        // It may have ended before anybody here has heard of that.
        if (isRefusal(error, 404, 409)) await requireRunning(engine, id, name);
        throw error;
      }
    };
    const cell = new DockerCell({
      ...made,
      isolation: site.isolation,
      wasOutOfMemory: site.host.ownKernel ? () => wasOutOfMemory(engine, id) : undefined,
      onGuestMissing: () => {
        site.forgetVolume();
        this.#lastingVolumes.clear();
      },
      limitMemory: toLimitMemory(site, made),
      remove: () => this.remove(site, id),
      freeze: act('pause a container', (container) => container.pause()),
      thaw: act('resume a container', (container) => container.unpause()),
      usage: () => readUsage(engine, id),
      ...(lasting === undefined
        ? {}
        : {
            lasting: {
              ...lasting,
              record: toRecord(id, name, lasting.marker),
              attachAgain: async () => {
                await requireRunning(engine, id, name);
                return attach(engine, id);
              },
            },
          }),
    });
    return this.keep(id, cell);
  }

  /** Most names have four random digits; with many cells two may meet, and others may have one like it. */
  async #make(site: DockerSite, spec: CellSpec, parts: BodyParts) {
    const { engine } = site.host;
    for (let attempt = 1; ; attempt++) {
      const name = attempt === 1 ? spec.name : toOtherName(spec.name);
      const body = toCreateBody({
        spec,
        name,
        image: parts.image,
        user: toUser(site, spec),
        labels: spec.lasting === undefined ? site.labels : toStoreLabels(spec.lasting.store),
        guestVolume: parts.volume,
        wire: parts.wire?.folder,
        runtime: this.#options.runtime,
        isPodman: site.host.isPodman,
        ownKernel: site.host.ownKernel,
        seccomp: site.seccomp,
      });
      try {
        return {
          name,
          container: await engine.call('create a container', (docker) => docker.createContainer(body)),
        };
      } catch (error) {
        if (!isNameTaken(error) || attempt === NAME_ATTEMPTS) throw error;
      }
    }
  }

  protected removeContainer(site: DockerSite, id: string): Promise<void> {
    return removeContainer(site.host.engine, id);
  }

  /** Cells of an engine that does not answer are of no use, even if they still run somewhere. */
  #onDown(problem: HotcellError): void {
    this.#options.log.error({ cells: this.cells.size, problem: problem.message }, 'engine away');
    for (const cell of this.cells.values()) cell.abandon(problem);
  }

  async #onUp(): Promise<void> {
    this.#options.log.info({}, 'engine back');
    const site = this.opened;
    if (site === undefined) return;
    site.forgetVolume();
    for (const cell of this.cells.values()) void cell.reconnect();
    await this.removeLeft(site);
  }

  async orphans(): Promise<LeftCell[]> {
    const { host } = await probeDocker(this.#options);
    return host === undefined ? [] : (await findOrphans(host.engine)).map(toLeftCell);
  }

  async reclaim(): Promise<string[]> {
    await removeDeadWires(await wireDirectory(this.#options));
    const { host } = await probeDocker(this.#options);
    return host === undefined ? [] : removeOrphans(host.engine);
  }

  protected async closeSite(site: DockerSite): Promise<void> {
    for (const store of this.#stores) await removeUnusedVolumes(site.host.engine, store).catch(() => {});
    await closeSite(site, this.#options.log);
  }
}

const toLeftCell = ({ id, since }: LeftCell): LeftCell => ({ id, since });

interface BodyParts {
  readonly image: string;
  readonly volume: string;
  readonly wire: Wire | undefined;
}

interface MadeCell extends Pick<DockerCellParts, 'id' | 'name' | 'spec' | 'stream' | 'wire'> {
  readonly image: string;
}

/** For workers alone: what people want to read of a cell is what its worker does. */
async function makeWire({ wires }: DockerSite, { kind }: CellSpec): Promise<Wire | undefined> {
  return kind === 'worker' && wires !== undefined ? Wire.make(wires) : undefined;
}

function toRecord(id: string, name: string, marker: Uint8Array): string {
  const record: LastingRecord = { id, name, marker: Buffer.from(marker).toString('base64') };
  return JSON.stringify(record);
}

/** Podman has no such call, and a kernel of its own does not hear of it. */
function toLimitMemory(
  site: DockerSite,
  cell: Pick<MadeCell, 'id' | 'name' | 'image'>,
): Cell['limitMemory'] | undefined {
  const { engine, isPodman, ownKernel } = site.host;
  if (ownKernel || isPodman) return undefined;
  return async (bytes) => {
    const body = { Memory: bytes, MemorySwap: bytes };
    try {
      await engine.call('change a limit', (docker) => docker.getContainer(cell.id).update(body));
    } catch (error) {
      throw toCellError(error, cell.name, cell.image);
    }
  };
}
