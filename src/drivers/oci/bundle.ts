import { mkdir, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fillRequest, withFolders, type CellSpec } from '../../core/cell.ts';
import type { ExecRequest } from '../../core/exec.ts';
import { PLACES } from '../linux/cell-places.ts';
import { toSeccompProfile } from '../linux/seccomp.ts';
import { LEAF, toRuntimePath } from './cgroup.ts';
import { toConfigJson } from './config-json.ts';
import { toChannelMounts, type FifoKit } from './fifo-kit.ts';
import type { HostIdentity } from './identity.ts';
import { BASE_ENV, CHANNEL_IN_CELL } from './rootfs.ts';
import type { OciSite } from './site.ts';

export interface BundleInput {
  readonly spec: CellSpec;
  readonly folder: string;
  readonly identity: HostIdentity;
  readonly kit: FifoKit;
  /** The cell's cgroup, from the folder that is ours. */
  readonly cgroupPath: string;
}

/** PID 1: an init for one program, or the agent that takes commands. */
function toInit({ main, lasting }: CellSpec): ExecRequest {
  if (main === undefined) {
    const ends = [join(CHANNEL_IN_CELL, 'in'), join(CHANNEL_IN_CELL, 'out')];
    return {
      argv: ['perl', '{guest}/agent.pl', ...(lasting === undefined ? [] : ['--lasting']), ...ends],
      env: {},
    };
  }
  return { argv: ['sh', '{guest}/init.sh', main.touch ?? '', ...main.argv], env: main.env };
}

/** Lays down the folder that a runtime makes a container from. */
export async function writeBundle(site: OciSite, input: BundleInput): Promise<void> {
  const { spec, identity } = input;
  const { ownKernel } = site.cli.traits;
  const { cgroups } = site.host;
  const folders = spec.folders ?? [];
  // Mount points; the root is read-only for cells and not for us.
  for (const { at } of folders) await mkdir(join(site.rootfs.path, at), { recursive: true });
  const { argv, env } = fillRequest(toInit(spec), withFolders(PLACES, spec.folders), BASE_ENV);
  const config = toConfigJson(
    {
      argv,
      env,
      hostname: spec.name,
      rootfs: site.rootfs.path,
      identity,
      limits: spec.limits,
      readOnly: [
        ...site.rootfs.readOnly,
        ...folders.map(({ folder, at }) => ({ source: folder, destination: at })),
      ],
      devices: site.rootfs.devices,
      channel: toChannelMounts(input.kit, CHANNEL_IN_CELL, {
        ownKernel,
        lasting: spec.lasting !== undefined,
      }),
      cgroupsPath:
        cgroups.version === 'none' ? undefined : toRuntimePath(cgroups, join(input.cgroupPath, LEAF)),
      // gVisor's kernel is the filter; it would take ours only without the errno that makes libraries fall back.
      seccomp: ownKernel ? undefined : toSeccompProfile(process.arch),
      limitsProcesses: ownKernel,
      // Shared memory that a command leaves behind would stay as long as the cell does.
      sysctl: spec.main === undefined && !ownKernel ? { 'kernel.shm_rmid_forced': '1' } : {},
      terminals: spec.kind === 'session',
      workspace: spec.workspace,
      labels: { 'hotcell.owner': site.instance.id, 'hotcell.kind': spec.kind, 'hotcell.name': spec.name },
    },
    site.paths,
  );
  await mkdir(input.folder, { recursive: true, mode: 0o711 });
  await writeFile(join(input.folder, 'config.json'), JSON.stringify(config));
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
