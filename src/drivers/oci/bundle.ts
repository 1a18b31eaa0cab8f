import { mkdir, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fillRequest, withFolders, type CellSpec } from '../../core/cell.ts';
import type { ExecRequest } from '../../core/exec.ts';
import { inspectFolders, type BoundFolder } from '../linux/bound-folders.ts';
import { PATHS_IN_CELL } from '../linux/cell-paths.ts';
import { toHostname } from '../linux/hostname.ts';
import { toOuterProfile } from '../linux/inner-filter.ts';
import { toSeccompProfile, type SeccompProfile } from '../linux/seccomp.ts';
import { toRuntimePath } from './cgroup.ts';
import { LEAF } from './cgroup-plan.ts';
import { toConfigJson } from './config-json.ts';
import { toChannelMounts, type FifoKit } from './fifo-kit.ts';
import type { HostIdentity } from './identity.ts';
import { BASE_ENV, CHANNEL_IN_CELL } from './rootfs.ts';
import { requireSearchableWay } from './searchable-way.ts';
import type { OciSite } from './site.ts';

export interface BundleInput {
  readonly spec: CellSpec;
  readonly folder: string;
  readonly identity: HostIdentity;
  readonly kit: FifoKit;
  /** It has slots, in which runs get walls of their own. */
  readonly isNest: boolean;
  /** The cell's cgroup, from the folder that is ours. */
  readonly cgroupPath: string;
}

/** What root of a cell with slots needs to make walls; each run has lost all of it before its program begins. */
const WALL_MAKERS = ['CAP_SYS_ADMIN', 'CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP', 'CAP_KILL', 'CAP_NET_ADMIN'];

/** PID 1: an init for one program, the agent that takes commands, or the one that relays for the runs in its slots. */
function toInit({ main, lasting }: CellSpec, isNest: boolean): ExecRequest {
  if (main === undefined) {
    const ends = [join(CHANNEL_IN_CELL, 'in'), join(CHANNEL_IN_CELL, 'out')];
    if (isNest) return { argv: ['perl', '{guest}/nest.pl', ...ends], env: {} };
    return {
      argv: ['perl', '{guest}/agent.pl', ...(lasting === undefined ? [] : ['--lasting']), ...ends],
      env: {},
    };
  }
  const { folder } = main;
  return {
    argv: ['sh', '{guest}/init.sh', main.touch ?? '', ...main.argv],
    env: main.env,
    ...(folder === undefined ? {} : { folder }),
  };
}

/** Lays down the folder that a runtime makes a container from. */
export async function writeBundle(site: OciSite, input: BundleInput): Promise<void> {
  const { spec, identity, isNest } = input;
  const { ownKernel, writableBind } = site.cli.traits;
  const { cgroups, rootless } = site.host;
  const folders = await inspectFolders(spec.folders ?? []);
  for (const folder of folders) await makeMountPoint(site.rootfs.path, folder);
  if (ownKernel) for (const { folder } of folders) await requireSearchableWay(folder, identity.host);
  const { argv, env, cwd } = fillRequest(
    toInit(spec, isNest),
    withFolders(PATHS_IN_CELL, spec.folders),
    BASE_ENV,
  );
  const config = toConfigJson(
    {
      argv,
      env,
      cwd,
      hostname: toHostname(spec.name),
      rootfs: site.rootfs.path,
      identity,
      limits: spec.limits,
      capabilities: isNest ? WALL_MAKERS : [],
      readOnly: site.rootfs.readOnly,
      folders: folders.map(({ folder, at, writable = false }) => ({
        source: folder,
        destination: at,
        writable,
      })),
      writableBind,
      devices: site.rootfs.devices,
      channel: toChannelMounts(input.kit, CHANNEL_IN_CELL, {
        ownKernel,
        lasting: spec.lasting !== undefined,
      }),
      cgroupsPath:
        cgroups.version === 'none' ? undefined : toRuntimePath(cgroups, join(input.cgroupPath, LEAF)),
      // gVisor's kernel is the filter; it would take ours only without the errno that makes libraries fall back.
      seccomp: ownKernel ? undefined : toProfile(isNest),
      limitsProcesses: ownKernel,
      // Shared memory that a command leaves behind would stay as long as the cell does. Without root nobody may say so.
      sysctl: spec.main === undefined && !ownKernel && !rootless ? { 'kernel.shm_rmid_forced': '1' } : {},
      terminals: spec.kind !== 'run',
      workspace: spec.workspace,
      labels: { 'hotcell.owner': site.instance.id, 'hotcell.kind': spec.kind, 'hotcell.name': spec.name },
    },
    site.paths,
  );
  await mkdir(input.folder, { recursive: true, mode: 0o711 });
  await writeFile(join(input.folder, 'config.json'), JSON.stringify(config));
}

function toProfile(isNest: boolean): SeccompProfile | undefined {
  const profile = toSeccompProfile(process.arch);
  return isNest && profile !== undefined ? toOuterProfile(profile) : profile;
}

/** In the root, which is read-only for cells and not for us. What lies in a folder of the host must be there already. */
async function makeMountPoint(root: string, { at, isFile, outer }: BoundFolder): Promise<void> {
  if (outer !== undefined) return;
  const place = join(root, at);
  await mkdir(isFile ? dirname(place) : place, { recursive: true });
  // One of another cell may be there, in use.
  if (isFile) await writeFile(place, '', { flag: 'a' });
}

export async function removeBundle(folder: string): Promise<void> {
  try {
    // As a rule there is one file; removing whatever there may be takes several times as long.
    await unlink(join(folder, 'config.json'));
    await rmdir(folder);
  } catch {
    await rm(folder, { recursive: true, force: true });
  }
}
