import { existsSync } from 'node:fs';
import type { Note } from '../../core/driver.ts';
import { enforcedBy, type Enforcement } from '../../core/enforcement.ts';
import { readCgroupLayout, type CgroupLayout } from './cgroup-layout.ts';
import type { HiddenMounts } from './keeper.ts';
import { findProgram } from '../process/find-program.ts';
import { RUNTIMES, findRuntime, type FoundRuntime, type RuntimeName } from './runtime.ts';
import { toTraits } from './runtime-traits.ts';
import type { OciOptions } from './site.ts';
import { toSeccompProfile } from '../linux/seccomp.ts';
import { unusable, type Probed } from '../probed.ts';

/** What the driver has to work with on this machine. */
export interface OciHost {
  readonly runtime: FoundRuntime;
  readonly cgroups: CgroupLayout;
  readonly rootless: boolean;
  readonly hidden: HiddenMounts | undefined;
}

const INSTALL = 'apt-get install -y crun';
/** v1 hierarchies that a cell does not need; without them the runtime makes fewer folders for each cell. */
const SPARED_V1 = /\/(devices|blkio|systemd|net_cls|net_prio|net_cls,net_prio|perf_event|hugetlb|rdma|misc)$/;

export async function probeOci(options: Pick<OciOptions, 'runtime' | 'rootfs'>): Promise<Probed<OciHost>> {
  if (process.platform !== 'linux') return unusable('the oci driver needs Linux', 'Run Hotcell on Linux.');
  const runtime = await pickRuntime(options.runtime);
  if (runtime === undefined) {
    const wanted = options.runtime === 'auto' ? 'no OCI runtime' : `no ${options.runtime}`;
    return unusable(
      `${wanted} found`,
      options.runtime === 'auto' ? INSTALL : `apt-get install -y ${options.runtime}`,
    );
  }
  const rootless = process.geteuid?.() !== 0;
  if (rootless && runtime.name !== 'crun') {
    return unusable(`${runtime.name} cannot run cells without root here`, `${INSTALL}, or run as root`);
  }
  for (const program of ['unshare', 'nsenter', 'mkfifo']) {
    if (findProgram(program) === undefined)
      return unusable(`${program} is missing`, 'apt-get install -y util-linux coreutils');
  }
  if (options.rootfs !== undefined && !existsSync(options.rootfs)) {
    return unusable(`rootfs ${options.rootfs} does not exist`, 'Correct the setting rootfs.');
  }
  const cgroups = await readCgroupLayout();
  const base = { runtime, cgroups, rootless };
  const host: OciHost = { ...base, hidden: toHiddenMounts(base) };
  return {
    ok: true,
    probe: { ok: true, runtime: runtime.label, enforcement: toEnforcement(host), notes: toNotes(host) },
    host,
  };
}

async function pickRuntime(wanted: RuntimeName | 'auto'): Promise<FoundRuntime | undefined> {
  for (const name of wanted === 'auto' ? RUNTIMES : [wanted]) {
    const found = await findRuntime(name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** crun refuses a cgroup2 mount beside v1 ones; runc and runsc do not mind. Without root a namespace is always needed. */
export function toHiddenMounts(host: Omit<OciHost, 'hidden'>): HiddenMounts | undefined {
  const { cgroups, rootless, runtime } = host;
  const hybridPath = '/sys/fs/cgroup/unified';
  if (rootless) return { rootless, paths: existsSync(hybridPath) ? [hybridPath] : [] };
  if (runtime.name !== 'crun' || cgroups.version !== 1 || !cgroups.hybrid) return undefined;
  return { rootless, paths: [hybridPath, ...cgroups.hierarchies.filter((mount) => SPARED_V1.test(mount))] };
}

export function toEnforcement(host: Pick<OciHost, 'cgroups' | 'rootless' | 'runtime'>): Enforcement {
  const byCgroup = host.cgroups.version === 'none' ? 'nobody' : 'kernel';
  if (toTraits(host.runtime.name).ownKernel)
    return enforcedBy('hypervisor', { cpus: byCgroup, memoryBytes: byCgroup });
  return enforcedBy('kernel', {
    cpus: byCgroup,
    memoryBytes: byCgroup,
    processes: byCgroup,
    // Without root the only id there is to map is the caller's own, which does exist on the host.
    identity: host.rootless ? 'nobody' : 'kernel',
    syscalls: toSeccompProfile(process.arch) === undefined ? 'nobody' : 'kernel',
  });
}

function toNotes(host: OciHost): Note[] {
  const notes: Note[] = [];
  if (host.cgroups.version === 'none') {
    notes.push({
      text: `no limits on CPU, memory and processes: ${host.cgroups.problem}`,
      remedy: toCgroupRemedy(host),
    });
  }
  if (host.rootless) notes.push({ text: 'without root all cells share one host identity: yours' });
  if (host.cgroups.version === 1) notes.push({ text: 'cgroup v1; v2 is what newer kernels are made for' });
  return notes;
}

function toCgroupRemedy({ cgroups, rootless }: OciHost): string {
  if (!rootless) return 'mount -t cgroup2 none /sys/fs/cgroup';
  return cgroups.version === 'none' && cgroups.delegable
    ? 'systemd-run --user --scope -p Delegate=yes ./hotcell up'
    : 'run as root';
}
