import { mkdir, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fillPlaceholders, type CellSpec } from '../../core/cell.ts';
import { LEAF, toRuntimePath } from './cgroup.ts';
import { toConfigJson } from './config-json.ts';
import { toChannelMounts, type FifoKit } from './fifo-kit.ts';
import type { HostIdentity } from './identity.ts';
import { BASE_ENV, CHANNEL_IN_CELL, GUEST_IN_CELL, WORKDIR_IN_CELL } from './rootfs.ts';
import { toSeccompProfile } from './seccomp.ts';
import type { OciSite } from './site.ts';

export interface BundleInput {
  readonly spec: CellSpec;
  readonly folder: string;
  readonly identity: HostIdentity;
  readonly kit: FifoKit;
  /** The cell's cgroup, from the folder that is ours. */
  readonly cgroupPath: string;
}

const PLACES = { workdir: WORKDIR_IN_CELL, guest: GUEST_IN_CELL };

/** Lays down the folder that a runtime makes a container from. */
export async function writeBundle(site: OciSite, input: BundleInput): Promise<void> {
  const { spec, identity } = input;
  const { ownKernel } = site.cli.traits;
  const { cgroups } = site.host;
  const argv =
    spec.main === undefined
      ? ['sh', '{guest}/idle.sh']
      : ['sh', '{guest}/init.sh', spec.touch ?? '', ...spec.main.argv];
  const env = Object.entries({ ...BASE_ENV, ...spec.main?.env });
  const config = toConfigJson(
    {
      argv: argv.map((word) => fillPlaceholders(word, PLACES)),
      env: Object.fromEntries(env.map(([name, value]) => [name, fillPlaceholders(value, PLACES)])),
      hostname: spec.name,
      rootfs: site.rootfs.path,
      identity,
      limits: spec.limits,
      readOnly: site.rootfs.readOnly,
      devices: site.rootfs.devices,
      channel: toChannelMounts(input.kit, CHANNEL_IN_CELL, ownKernel),
      cgroupsPath:
        cgroups.version === 'none' ? undefined : toRuntimePath(cgroups, join(input.cgroupPath, LEAF)),
      // gVisor's kernel is the filter; it would take ours only without the errno that makes libraries fall back.
      seccomp: ownKernel ? undefined : toSeccompProfile(process.arch),
      limitsProcesses: ownKernel,
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
