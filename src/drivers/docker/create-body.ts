import type { ContainerCreateOptions } from 'dockerode';
import { TMP_OF_WORKSPACE, WORKSPACE_IN_CELL, type CellOwner, type CellSpec } from '../../core/cell.ts';
import { GUEST_IN_CELL, WORKDIR_IN_CELL } from '../linux/cell-paths.ts';
import { toHostname } from '../linux/hostname.ts';
import { GVISOR_OVERHEAD, NO_OVERHEAD } from '../linux/runtime-overhead.ts';
import { MASKED_PATHS, MASKED_SYS_PATHS, READ_ONLY_PATHS } from '../linux/masked-paths.ts';
import { WIRE_FIFO, WIRE_IN_CELL } from './wire.ts';

const MiB = 1024 * 1024;
/** Semaphores and small buffers of the C library live there. It counts as memory, like /tmp. */
const SHM_BYTES = 16 * MiB;

/** In memory /tmp gets one part in so many. */
const SHARE_OF_TMP = 8;

const SEALED = 'ro,nosuid,nodev,noexec,size=4096';

export interface CreateInput {
  readonly spec: CellSpec;
  readonly image: string;
  readonly name: string;
  /** Who the program is, inside and, unless the engine maps users, outside. */
  readonly user: CellOwner;
  readonly labels: Readonly<Record<string, string>>;
  readonly guestVolume: string;
  /** The host's folder with the FIFO of the agent. Then stdout is free for lines that the engine keeps; undefined: it is none. */
  readonly wire: string | undefined;
  /** Runtime class of the engine; undefined for its default. */
  readonly runtime: string | undefined;
  readonly isPodman: boolean;
  /** The runtime brings a kernel of its own, which counts processes by the limit of a user. */
  readonly ownKernel: boolean;
  /** The filter of system calls, as the engine takes it; undefined where it brings its own. */
  readonly seccomp: string | undefined;
}

/** What the engine makes a container from. Pure: what a cell is can be read in a test without any engine. */
export function toCreateBody(input: CreateInput): ContainerCreateOptions {
  const { spec } = input;
  const { limits } = spec;
  const overhead = input.ownKernel ? GVISOR_OVERHEAD : NO_OVERHEAD;
  const memory = limits.memoryBytes + overhead.memoryBytes;
  const hard = (name: string, value: number) => ({ Name: name, Soft: value, Hard: value });
  const tmpfs = (bytes: number, ...options: string[]): string =>
    [
      'rw',
      'nosuid',
      'nodev',
      ...options,
      'mode=1777',
      `size=${bytes}`,
      // Podman knows no limit of inodes; there only the memory that they take is limited.
      ...(input.isPodman ? [] : [`nr_inodes=${toInodes(bytes)}`]),
    ].join(',');
  return {
    name: input.name,
    Image: input.image,
    Hostname: toHostname(input.name),
    Entrypoint: [
      'perl',
      `${GUEST_IN_CELL}/agent.pl`,
      ...(spec.lasting === undefined ? [] : ['--lasting']),
      ...(input.wire === undefined ? [] : ['--log', `${WIRE_IN_CELL}/${WIRE_FIFO}`]),
    ],
    Cmd: [],
    User: `${input.user.uid}:${input.user.gid}`,
    WorkingDir: WORKDIR_IN_CELL,
    Env: [`HOME=${WORKDIR_IN_CELL}`, 'LANG=C.UTF-8'],
    Labels: { ...input.labels, 'hotcell.kind': spec.kind, 'hotcell.name': input.name },
    // The agent's connection. It ends with ours, and the container with it, also after kill -9 of the server; unless the
    // cell is to outlive us.
    OpenStdin: true,
    StdinOnce: spec.lasting === undefined,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    // SECURITY: a check that the image brings along would run outside of every limit of time.
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      // A kernel of its own may run out of memory as a whole, and only the engine can tell us then.
      AutoRemove: !input.ownKernel,
      NetworkMode: 'none',
      ReadonlyRootfs: true,
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: Math.max(10_000_000, Math.round(limits.cpus * 1e9)),
      PidsLimit: overhead.threads + overhead.threadsPerProcess * limits.processes,
      Ulimits: [
        hard('nofile', limits.openFiles),
        hard('core', 0),
        ...(input.ownKernel ? [hard('nproc', limits.processes)] : []),
        // Podman would ask for more than its own, which takes a privilege. Above PidsLimit, which is what counts.
        ...(input.isPodman && !input.ownKernel ? [hard('nproc', limits.processes * 2)] : []),
      ],
      CapDrop: ['ALL'],
      SecurityOpt: [
        'no-new-privileges',
        ...(input.seccomp === undefined ? [] : [`seccomp=${input.seccomp}`]),
      ],
      Tmpfs: {
        ...toTmpfs(spec, (bytes) => tmpfs(bytes, 'exec')),
        '/dev/shm': tmpfs(SHM_BYTES, 'noexec'),
        // A read-only root has writable corners in Podman unless they are taken.
        ...(input.isPodman ? { '/run': SEALED, '/var/tmp': SEALED } : {}),
      },
      // The engine's own /dev/shm would have no limit of inodes.
      IpcMode: 'none',
      // Shared memory that a command leaves behind would stay as long as the cell does.
      ...(input.ownKernel ? {} : { Sysctls: { 'kernel.shm_rmid_forced': '1' } }),
      MaskedPaths: [...MASKED_PATHS, ...MASKED_SYS_PATHS],
      ReadonlyPaths: READ_ONLY_PATHS,
      Mounts: [
        {
          Type: 'volume',
          Source: input.guestVolume,
          Target: GUEST_IN_CELL,
          ReadOnly: true,
          VolumeOptions: { NoCopy: true, Labels: {}, DriverConfig: { Name: 'local', Options: {} } },
        },
        ...toBinds(input).map(({ source, target, readOnly }) => ({
          Type: 'bind' as const,
          Source: source,
          Target: target,
          ReadOnly: readOnly,
          BindOptions: { Propagation: 'rprivate' as const },
        })),
      ],
      // The output of commands: nobody reads it, and it makes output eight times slower. Lines for people: bounded.
      LogConfig:
        input.wire === undefined
          ? { Type: 'none', Config: {} }
          : { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '3' } },
      RestartPolicy: { Name: 'no' },
      ...(input.runtime === undefined ? {} : { Runtime: input.runtime }),
    },
  };
}

/** In memory: /tmp alone, or beside the workspace; together no more than `diskBytes`. */
function toTmpfs(
  { limits: { diskBytes }, workspace }: CellSpec,
  toOptions: (bytes: number) => string,
): Record<string, string> {
  if (workspace === undefined) return { [WORKDIR_IN_CELL]: toOptions(diskBytes) };
  if (workspace.folder !== undefined) return {};
  const forTmp = Math.floor(diskBytes / SHARE_OF_TMP);
  return { [WORKSPACE_IN_CELL]: toOptions(diskBytes - forTmp), [WORKDIR_IN_CELL]: toOptions(forTmp) };
}

interface Bind {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

function toBinds({ spec: { workspace, folders = [] }, wire }: CreateInput): Bind[] {
  const folder = workspace?.folder;
  const open = (source: string, target: string): Bind => ({ source, target, readOnly: false });
  return [
    ...(folder === undefined
      ? []
      : [open(folder, WORKSPACE_IN_CELL), open(`${folder}/${TMP_OF_WORKSPACE}`, WORKDIR_IN_CELL)]),
    ...folders.map(({ folder: source, at: target, writable }) => ({
      source,
      target,
      readOnly: writable !== true,
    })),
    ...(wire === undefined ? [] : [{ source: wire, target: WIRE_IN_CELL, readOnly: true }]),
  ];
}

function toInodes(bytes: number): number {
  return Math.max(1024, Math.floor(bytes / 4096));
}
