import { join } from 'node:path';
import type { Limits } from '../../core/limits.ts';
import { NO_OVERHEAD, type Overhead } from '../linux/runtime-overhead.ts';
import type { CgroupLayout } from './cgroup-layout.ts';

const CPU_PERIOD_US = 100_000;

/** The runtime puts the processes one level below, so that the figures outlive the runtime's own clean-up. */
export const LEAF = 'cell';

export type FileName = 'cpu' | 'memoryPeak';

/** Files to read the usage from, and files to write the limits to. Pure. */
export interface CgroupPlan {
  readonly folders: readonly string[];
  /** Where v1 counts what `outOfMemory` and `outOfProcesses` tell; a runtime that finds them made does not remove them. */
  readonly leaves: readonly string[];
  readonly limits: readonly (readonly [path: string, value: string])[];
  readonly memory: readonly string[];
  readonly quota: readonly [path: string, unlimited: string];
  /** Where the processes are. */
  readonly members: readonly string[];
  /** Counted for the cell and everything below it; read from descriptors that stay open. */
  readonly stats: Readonly<Record<FileName, string>>;
  /** v1 counts these only where the process is, one level below; so they are gone when the runtime has tidied up. */
  readonly outOfMemory: readonly string[];
  /** Memory and processes at the moment. */
  readonly current: readonly [memory: string, processes: string];
  readonly outOfProcesses: readonly string[];
  readonly cpuUnitsPerMs: number;
}

export function toCgroupPlan(
  layout: CgroupLayout & { version: 1 | 2 },
  path: string,
  limits: Limits,
  { overhead = NO_OVERHEAD, leaf = LEAF }: { readonly overhead?: Overhead; readonly leaf?: string } = {},
): CgroupPlan {
  const bytes = String(limits.memoryBytes + overhead.memoryBytes);
  const threads = String(overhead.threads + overhead.threadsPerProcess * limits.processes);
  const quotaUs = Math.max(1000, Math.round(limits.cpus * CPU_PERIOD_US));
  if (layout.version === 2) {
    const folder = join(layout.root, path);
    const memoryMax = join(folder, 'memory.max');
    return {
      folders: [folder],
      leaves: [],
      limits: [
        [memoryMax, bytes],
        [join(folder, 'memory.swap.max'), '0'],
        [join(folder, 'pids.max'), threads],
        [join(folder, 'cpu.max'), `${quotaUs} ${CPU_PERIOD_US}`],
      ],
      memory: [memoryMax],
      quota: [join(folder, 'cpu.max'), 'max'],
      members: [join(folder, leaf)],
      stats: {
        cpu: join(folder, 'cpu.stat'),
        memoryPeak: join(folder, 'memory.peak'),
      },
      outOfMemory: [join(folder, 'memory.events')],
      current: [join(folder, 'memory.current'), join(folder, 'pids.current')],
      outOfProcesses: [...new Set([folder, join(folder, leaf)])].map((place) => join(place, 'pids.events')),
      cpuUnitsPerMs: 1000,
    };
  }
  const at = (controller: keyof typeof layout.mounts, file = ''): string =>
    join(layout.mounts[controller], path, file);
  return {
    folders: [...new Set([at('cpu'), at('cpuacct'), at('memory'), at('pids')])],
    leaves: leaf === '' ? [] : [at('memory', leaf), at('pids', leaf)],
    limits: [
      [at('memory', 'memory.limit_in_bytes'), bytes],
      [at('memory', 'memory.memsw.limit_in_bytes'), bytes],
      [at('pids', 'pids.max'), threads],
      [at('cpu', 'cpu.cfs_period_us'), String(CPU_PERIOD_US)],
      [at('cpu', 'cpu.cfs_quota_us'), String(quotaUs)],
    ],
    memory: [at('memory', 'memory.limit_in_bytes'), at('memory', 'memory.memsw.limit_in_bytes')],
    quota: [at('cpu', 'cpu.cfs_quota_us'), '-1'],
    members: [at('pids', leaf)],
    stats: {
      cpu: at('cpuacct', 'cpuacct.usage'),
      memoryPeak: at('memory', 'memory.max_usage_in_bytes'),
    },
    current: [at('memory', 'memory.usage_in_bytes'), at('pids', 'pids.current')],
    outOfMemory: [at('memory', join(leaf, 'memory.oom_control'))],
    outOfProcesses: [at('pids', join(leaf, 'pids.events'))],
    cpuUnitsPerMs: 1_000_000,
  };
}
