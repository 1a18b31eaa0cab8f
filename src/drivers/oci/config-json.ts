import type { Limits } from '../../core/limits.ts';
import type { SeccompProfile } from './seccomp.ts';

/** Who a cell runs as: ids inside, and the otherwise unused host ids they are mapped to. */
export interface CellIdentity {
  readonly uid: number;
  readonly mappings: readonly { containerID: number; hostID: number; size: number }[];
}

export interface BindMount {
  readonly source: string;
  readonly destination: string;
}

export interface ChannelMount extends BindMount {
  readonly writable: boolean;
}

export interface ConfigInput {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly hostname: string;
  readonly rootfs: string;
  readonly identity: CellIdentity;
  readonly limits: Limits;
  /** Read-only binds, in order: programs, libraries, guest files, devices. */
  readonly readOnly: readonly BindMount[];
  readonly devices: readonly BindMount[];
  /** What brings the FIFOs that the init of a hot cell opens. */
  readonly channel: readonly ChannelMount[];
  readonly cgroupsPath: string | undefined;
  readonly seccomp: SeccompProfile | undefined;
  /** The runtime's own kernel counts processes, and it knows no other way to be told how many. */
  readonly limitsProcesses: boolean;
  readonly labels: Readonly<Record<string, string>>;
}

const WORKDIR = '/tmp';

/** `/proc` entries that tell about the host or reach into the kernel. */
const MASKED = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/cmdline',
  '/proc/config.gz',
  '/proc/interrupts',
  '/proc/kallsyms',
  '/proc/kcore',
  '/proc/keys',
  '/proc/key-users',
  '/proc/kmsg',
  '/proc/kpagecount',
  '/proc/kpageflags',
  '/proc/latency_stats',
  '/proc/modules',
  '/proc/pressure',
  '/proc/sched_debug',
  '/proc/scsi',
  '/proc/slabinfo',
  '/proc/timer_list',
  '/proc/timer_stats',
];
const READ_ONLY = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

export interface MaskablePaths {
  readonly masked: readonly string[];
  readonly readOnly: readonly string[];
}

/** The paths that this kernel has: a runtime spends a mount or an error on each, so ask for no others. */
export function toMaskablePaths(exists: (path: string) => boolean): MaskablePaths {
  return { masked: MASKED.filter(exists), readOnly: READ_ONLY.filter(exists) };
}

/** The config.json of a bundle. Pure: what a cell is can be read in a test without any runtime. */
export function toConfigJson(input: ConfigInput, paths: MaskablePaths): Record<string, unknown> {
  const hard = (type: string, value: number) => ({ type, hard: value, soft: value });
  return {
    ociVersion: '1.0.2',
    hostname: input.hostname,
    annotations: input.labels,
    root: { path: input.rootfs, readonly: true },
    process: {
      terminal: false,
      user: { uid: input.identity.uid, gid: input.identity.uid },
      args: input.argv,
      env: Object.entries(input.env).map(([name, value]) => `${name}=${value}`),
      cwd: WORKDIR,
      noNewPrivileges: true,
      capabilities: { bounding: [], effective: [], inheritable: [], permitted: [], ambient: [] },
      rlimits: [
        hard('RLIMIT_NOFILE', input.limits.openFiles),
        hard('RLIMIT_CORE', 0),
        ...(input.limitsProcesses ? [hard('RLIMIT_NPROC', input.limits.processes)] : []),
      ],
    },
    mounts: toMounts(input),
    linux: {
      ...(input.cgroupsPath === undefined ? {} : { cgroupsPath: input.cgroupsPath }),
      namespaces: ['user', 'pid', 'network', 'ipc', 'uts', 'mount', 'cgroup'].map((type) => ({ type })),
      uidMappings: input.identity.mappings,
      gidMappings: input.identity.mappings,
      maskedPaths: paths.masked,
      readonlyPaths: paths.readOnly,
      ...(input.seccomp === undefined ? {} : { seccomp: input.seccomp }),
    },
  };
}

function toMounts(input: ConfigInput): unknown[] {
  const bind = (mount: BindMount, ...options: string[]) => ({
    ...mount,
    type: 'bind',
    options: ['bind', 'nosuid', ...options],
  });
  const inodes = Math.max(1024, Math.floor(input.limits.diskBytes / 4096));
  return [
    { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
    ...input.readOnly.map((mount) => bind(mount, 'ro', 'nodev')),
    // SECURITY: devices are single binds over a read-only /dev of ours; a writable /dev at start has been a way out.
    ...input.devices.map((mount) => bind(mount, 'noexec')),
    {
      destination: WORKDIR,
      type: 'tmpfs',
      source: 'tmpfs',
      options: ['nosuid', 'nodev', 'mode=1777', `size=${input.limits.diskBytes}`, `nr_inodes=${inodes}`],
    },
    ...input.channel.map(({ writable, ...mount }) =>
      bind(mount, ...(writable ? [] : ['ro']), 'nodev', 'noexec'),
    ),
  ];
}
