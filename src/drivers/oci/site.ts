import { randomBytes } from 'node:crypto';
import { existsSync, watch, type FSWatcher } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Isolation } from '../../core/cell.ts';
import { requireEnforcement } from '../../core/enforcement.ts';
import type { DriverSurroundings } from '../kind.ts';
import { messageOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { requireHost } from '../probed.ts';
import {
  defaultStateDirectory,
  openInstance,
  openLastingInstance,
  type Instance,
} from '../process/instance.ts';
import { hierarchiesOf, makeInstanceCgroup, removeCgroups } from './cgroup.ts';
import { toMaskablePaths, type MaskablePaths } from '../linux/masked-paths.ts';
import { FifoKits } from './fifo-kit.ts';
import { IdentityRange } from './identity.ts';
import { Keeper } from './keeper.ts';
import { probeOci, type OciHost } from './probe.ts';
import { makeRootfs, type Rootfs } from './rootfs.ts';
import { RuntimeCli, type RuntimeName } from './runtime.ts';

export interface OciOptions extends Pick<
  DriverSurroundings,
  'stateDirectory' | 'guest' | 'tools' | 'weaker' | 'log'
> {
  readonly runtime: RuntimeName | 'auto';
  /** Folder to use as root instead of the host's own /usr. */
  readonly rootfs: string | undefined;
}

/** What all cells of one process share: made with the first cell, removed after the last. */
export interface OciSite {
  readonly host: OciHost;
  readonly instance: Instance;
  readonly rootfs: Rootfs;
  readonly kits: FifoKits;
  readonly identities: IdentityRange;
  readonly keeper: Keeper;
  /** Where the runtime or we make cgroups; what is hidden from the runtime is left out. */
  readonly hierarchies: readonly string[];
  readonly cli: RuntimeCli;
  readonly isolation: Isolation;
  readonly paths: MaskablePaths;
  readonly watcher: FSWatcher;
}

export const runtimeDirectoryOf = (instance: Instance): string => join(instance.directory, 'runtime');
export const cgroupPathOf = (instanceId: string): string => `/hotcell/${instanceId}`;

/**
 * `onVanished` is called when somebody removes the folder: its cells lose their mounts with it. With a store it is the
 * place of cells that outlive us.
 */
export async function openSite(
  options: OciOptions,
  onVanished: () => void,
  lastingStore?: string,
): Promise<OciSite> {
  const { probe, host } = requireHost(await probeOci(options));
  requireEnforcement(probe.enforcement, options.weaker);
  const stateDirectory = options.stateDirectory ?? (await defaultStateDirectory());
  const instance =
    lastingStore === undefined
      ? await openInstance(stateDirectory)
      : await openLastingInstance(stateDirectory, lastingStore);
  const keeper = await Keeper.open(host.hidden);
  await makeInstanceCgroup(host.cgroups, cgroupPathOf(instance.id));
  const { guest, tools, rootfs } = options;
  return {
    host,
    instance,
    keeper,
    hierarchies: hierarchiesOf(host.cgroups).filter((mount) => host.hidden?.paths.includes(mount) !== true),
    rootfs: await makeRootfs({
      // One of its own for each server: what its cells are made from must not change under them.
      directory: join(instance.directory, `rootfs-${randomBytes(4).toString('hex')}`),
      base: rootfs,
      guest,
      tools,
      workspaces: lastingStore !== undefined,
    }),
    kits: new FifoKits(join(instance.directory, 'kits')),
    identities: new IdentityRange(host.rootless),
    cli: toCli(host, instance, keeper),
    isolation: { driver: 'oci', runtime: probe.runtime, enforcement: probe.enforcement },
    paths: toMaskablePaths(existsSync),
    watcher: watchFor(instance.directory, onVanished),
  };
}

/** The runtime's command line for the cells of an instance, also of one that is dead. */
export function toCli(host: OciHost, instance: Instance, keeper: Keeper): RuntimeCli {
  return new RuntimeCli({
    runtime: host.runtime,
    stateDirectory: runtimeDirectoryOf(instance),
    enter: () => keeper.enter(),
    cgroups: host.cgroups.version !== 'none',
  });
}

/** Somebody removed the folder: no cell can be made here any more. */
export function isBroken(site: OciSite): boolean {
  return !existsSync(site.rootfs.path);
}

function watchFor(directory: string, onVanished: () => void): FSWatcher {
  const watcher = watch(dirname(directory), { persistent: false }, () => {
    if (existsSync(directory)) return;
    watcher.close();
    onVanished();
  });
  watcher.on('error', () => watcher.close());
  return watcher;
}

/** Precondition: the site has no cells any more. What cannot be removed is left to the next start. */
export async function closeSite(site: OciSite, log: Log): Promise<void> {
  const { id, directory } = site.instance;
  try {
    await leaveSite(site);
    await removeCgroups(hierarchiesOf(site.host.cgroups), cgroupPathOf(id));
    await removeFolder(directory);
  } catch (error) {
    log.error({ instance: id, error: messageOf(error) }, 'instance removal failed');
  }
}

/** Leaves the cells to the next server. */
export async function leaveSite(site: OciSite): Promise<void> {
  site.watcher.close();
  await site.keeper[Symbol.asyncDispose]();
}

/** A runtime that is just ending may still write there: try again rather than fail. */
export async function removeFolder(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}
