import { randomBytes } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CellOwner, CellSpec, Isolation } from '../../core/cell.ts';
import { requireEnforcement } from '../../core/enforcement.ts';
import { messageOf, type HotcellError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import type { DriverSurroundings } from '../kind.ts';
import { requireHost } from '../probed.ts';
import { UnusedIds } from '../linux/unused-ids.ts';
import { defaultStateDirectory } from '../process/instance.ts';
import { removeOwn, removeVolume } from './containers.ts';
import type { Endpoint } from './endpoint.ts';
import { EngineWatch } from './engine-watch.ts';
import { makeGuestVolume } from './guest-volume.ts';
import { ImageStore } from './images.ts';
import { toOwnerLabels, type Labels } from '../engine/owner-labels.ts';
import { probeDocker, type DockerHost } from './probe.ts';

export interface DockerOptions extends Omit<DriverSurroundings, 'tools' | 'variables'> {
  readonly endpoint: Endpoint;
  /** Runtime class of the engine, such as `runsc`; undefined for its default. */
  readonly runtime: string | undefined;
}

/** What all cells of one process share in an engine. */
export interface DockerSite {
  readonly host: DockerHost;
  readonly labels: Labels;
  readonly images: ImageStore;
  readonly isolation: Isolation;
  readonly ids: UnusedIds;
  /** As the engine takes it. */
  readonly seccomp: string | undefined;
  readonly watch: EngineWatch;
  /** Where wires are made; undefined where a FIFO of this machine does not lead into a cell. */
  readonly wires: string | undefined;
  /** Makes the volume with the guest files the first time; `image` is any that the engine has. */
  guestVolume(image: string): Promise<string>;
  /** Somebody may have removed it: makes it again the next time. */
  forgetVolume(): void;
  readonly volumeName: string;
}

/** Without a mapping of users the engine's ids are those of its host, where 1000 is somebody. */
const MAPPED_USER = 1000;

export function toUser(site: DockerSite, { owner, workspace }: CellSpec): CellOwner {
  if (owner !== undefined) return owner;
  const id = site.host.mapsUsers ? MAPPED_USER : (workspace?.owner ?? site.ids.next());
  return { uid: id, gid: id };
}

export async function openSite(
  options: DockerOptions,
  listeners: { onDown(problem: HotcellError): void; onUp(): void },
): Promise<DockerSite> {
  const { probe, host } = requireHost(await probeDocker(options));
  requireEnforcement(probe.enforcement, options.weaker);
  const instance = randomBytes(6).toString('hex');
  const labels = await toOwnerLabels(instance);
  const volumeName = `hotcell-${instance}`;
  const { guest, languages, recipes } = options;
  let making: Promise<void> | undefined;
  return {
    host,
    labels,
    images: new ImageStore(host.engine, { recipes, languages }),
    isolation: { driver: 'docker', runtime: probe.runtime, enforcement: probe.enforcement },
    ids: new UnusedIds(),
    seccomp: await layOutSeccomp(host, options),
    watch: new EngineWatch(host.engine, listeners),
    wires: host.sharesKernel && !host.mapsUsers ? await wireDirectory(options) : undefined,
    volumeName,
    guestVolume: async (image) => {
      making ??= makeGuestVolume(host.engine, { name: volumeName, labels, image, guest });
      await making.catch((error: unknown) => {
        making = undefined;
        throw error;
      });
      return volumeName;
    },
    forgetVolume: () => {
      making = undefined;
    },
  };
}

/** A Podman that is on another machine cannot read our file, and keeps to the filter that it brings. */
async function layOutSeccomp(host: DockerHost, options: DockerOptions): Promise<string | undefined> {
  if (host.seccomp === undefined) return undefined;
  const text = JSON.stringify(host.seccomp);
  if (!host.isPodman) return text;
  if (!options.endpoint.local || process.platform !== 'linux') return undefined;
  const directory = `${options.stateDirectory ?? (await defaultStateDirectory())}-podman`;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = join(directory, 'seccomp.json');
  const unfinished = `${file}.${randomBytes(6).toString('hex')}`;
  await writeFile(unfinished, text, { flag: 'wx' });
  await rename(unfinished, file);
  return file;
}

export async function wireDirectory({
  stateDirectory,
}: Pick<DockerOptions, 'stateDirectory'>): Promise<string> {
  return `${stateDirectory ?? (await defaultStateDirectory())}-docker`;
}

/** Precondition: the site knows of no cells any more. */
export async function closeSite(site: DockerSite, log: Log): Promise<void> {
  site.watch.close();
  await removeOwn(site.host.engine, site.labels).catch((error: unknown) =>
    log.warn({ error: messageOf(error) }, 'cell removal failed'),
  );
  await removeVolume(site.host.engine, site.volumeName).catch((error: unknown) =>
    log.warn({ volume: site.volumeName, error: messageOf(error) }, 'volume removal failed'),
  );
}
