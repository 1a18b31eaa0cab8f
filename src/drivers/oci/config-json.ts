import { TMP_OF_WORKSPACE, WORKSPACE_IN_CELL } from '../../core/cell.ts';
import type { Limits } from '../../core/limits.ts';
import { WORKDIR_IN_CELL } from '../linux/cell-paths.ts';
import type { MaskablePaths } from '../linux/masked-paths.ts';
import type { SeccompProfile } from '../linux/seccomp.ts';

/** In memory /tmp gets one part in so many. */
const SHARE_OF_TMP = 8;

type IdMappings = readonly { containerID: number; hostID: number; size: number }[];

/** Who a cell runs as: ids inside, and the host ids they are mapped to. */
export interface CellIdentity {
  /** Also its group. */
  readonly uid: number;
  readonly uidMappings: IdMappings;
  readonly gidMappings: IdMappings;
}

export interface BindMount {
  readonly source: string;
  readonly destination: string;
}

export interface OpenMount extends BindMount {
  readonly writable: boolean;
}

export interface ConfigInput {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly hostname: string;
  readonly rootfs: string;
  readonly identity: CellIdentity;
  readonly limits: Limits;
  /** What PID 1 and those it starts may do as root of the cell; programs of a cell have none. */
  readonly capabilities: readonly string[];
  /** Read-only binds, in order: programs, libraries, guest files, devices. */
  readonly readOnly: readonly BindMount[];
  /** Of the spec; one may lie in another that comes before it. */
  readonly folders: readonly OpenMount[];
  /** What a writable one needs beside `nosuid` and `nodev`. */
  readonly writableBind: readonly string[];
  readonly devices: readonly BindMount[];
  /** What brings the FIFOs that the init of a hot cell opens. */
  readonly channel: readonly OpenMount[];
  readonly cgroupsPath: string | undefined;
  readonly seccomp: SeccompProfile | undefined;
  /** The runtime's own kernel counts processes, and it knows no other way to be told how many. */
  readonly limitsProcesses: boolean;
  readonly sysctl: Readonly<Record<string, string>>;
  /** Where commands may have a terminal. */
  readonly terminals: boolean;
  /** Where to work beside /tmp: in memory, or a folder with a bound of its own that has a `.tmp` in it. */
  readonly workspace: { readonly folder: string | undefined } | undefined;
  readonly labels: Readonly<Record<string, string>>;
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
      cwd: input.cwd,
      noNewPrivileges: true,
      capabilities: {
        bounding: input.capabilities,
        effective: input.capabilities,
        inheritable: [],
        permitted: input.capabilities,
        ambient: [],
      },
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
      uidMappings: input.identity.uidMappings,
      gidMappings: input.identity.gidMappings,
      ...(Object.keys(input.sysctl).length === 0 ? {} : { sysctl: input.sysctl }),
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
  return [
    { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
    ...input.readOnly.map((mount) => bind(mount, 'ro', 'nodev')),
    ...input.folders.map(({ writable, ...mount }) =>
      bind(mount, ...(writable ? input.writableBind : ['ro']), 'nodev'),
    ),
    // SECURITY: devices are single binds over a read-only /dev of ours; a writable /dev at start has been a way out.
    ...input.devices.map((mount) => bind(mount, 'noexec')),
    ...toWritable(input).map((mount) =>
      mount.source === undefined
        ? toTmpfs(mount.destination, mount.bytes)
        : bind({ source: mount.source, destination: mount.destination }, 'nodev'),
    ),
    ...(input.terminals ? [TERMINALS] : []),
    ...input.channel.map(({ writable, ...mount }) =>
      bind(mount, ...(writable ? [] : ['ro']), 'nodev', 'noexec'),
    ),
  ];
}

const TERMINALS = {
  destination: '/dev/pts',
  type: 'devpts',
  source: 'devpts',
  options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'],
};

function toTmpfs(destination: string, bytes: number) {
  const inodes = Math.max(1024, Math.floor(bytes / 4096));
  return {
    destination,
    type: 'tmpfs',
    source: 'tmpfs',
    options: ['nosuid', 'nodev', 'mode=1777', `size=${bytes}`, `nr_inodes=${inodes}`],
  };
}

interface WritableFolder {
  readonly destination: string;
  /** Undefined: in memory. */
  readonly source: string | undefined;
  readonly bytes: number;
}

/** All that can be written is together no more than `diskBytes`. */
function toWritable({ limits: { diskBytes }, workspace }: ConfigInput): WritableFolder[] {
  const writable = (destination: string, source: string | undefined, bytes: number) => ({
    destination,
    source,
    bytes,
  });
  if (workspace === undefined) return [writable(WORKDIR_IN_CELL, undefined, diskBytes)];
  const { folder } = workspace;
  if (folder !== undefined) {
    return [
      writable(WORKSPACE_IN_CELL, folder, diskBytes),
      writable(WORKDIR_IN_CELL, `${folder}/${TMP_OF_WORKSPACE}`, diskBytes),
    ];
  }
  const forTmp = Math.floor(diskBytes / SHARE_OF_TMP);
  return [
    writable(WORKSPACE_IN_CELL, undefined, diskBytes - forTmp),
    writable(WORKDIR_IN_CELL, undefined, forTmp),
  ];
}
