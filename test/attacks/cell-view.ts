import { existsSync } from 'node:fs';
import type { Way } from '../support/served-by.ts';

/** What a program sees of itself and around itself, as far as the drivers differ in it. */
export interface CellView {
  /** Its user, which is also its group. */
  readonly user: RegExp;
  /** The groups that it has besides. */
  readonly groups: RegExp;
  /** Prints which user it is on the host. */
  readonly printHostUser: string;
  /** Namespaces that are not the host's. */
  readonly namespaces: readonly string[];
  readonly variables: string;
  readonly devices: readonly string[];
  /** What else can be opened for writing outside of /tmp, and folders in which something can be made. */
  readonly writable: readonly string[];
  /** Mounts that are not read-only, apart from those of devices and of what is masked. */
  readonly writableMounts: readonly string[];
}

const HARMLESS_DEVICES = ['full', 'null', 'random', 'urandom', 'zero'].map((name) => `/dev/${name}`);

const OCI: CellView = {
  user: /^1000$/,
  groups: /^$/,
  printHostUser: "awk '$1 == 1000 { print $2 }' /proc/self/uid_map",
  namespaces: ['user', 'pid', 'net', 'ipc', 'uts', 'mnt', 'cgroup'],
  variables: 'HOME LANG PATH PWD SHLVL _',
  devices: HARMLESS_DEVICES,
  // The channel of the cell.
  writable: ['err', 'hold', 'in', 'out', 'status'].map((name) => `/run/hotcell/${name}`),
  writableMounts: ['/proc', '/tmp'],
};

const hasCgroup2 = existsSync('/sys/fs/cgroup/cgroup.controllers');

/** The root is the image's, and some things are as the engine makes them for every container. */
const DOCKER: CellView = {
  // No user namespace unless the engine maps users, but a user that nobody on the host is.
  user: /^1[89]\d{8}$|^20[01]\d{7}$/,
  groups: /^\d+$/,
  printHostUser: 'id -u',
  namespaces: ['pid', 'net', 'ipc', 'uts', 'mnt'],
  variables: 'HOME HOSTNAME LANG PATH PWD SHLVL _',
  // Terminals of the container's own.
  devices: [...HARMLESS_DEVICES, '/dev/pts/ptmx', '/dev/tty'],
  // Bounded like /tmp, and counted as memory.
  writable: ['/dev/shm'],
  writableMounts: ['/dev', '/proc', '/tmp', ...(hasCgroup2 ? [] : ['/sys/fs/cgroup'])],
};

export const CELL_VIEW: Readonly<Record<Way['driver'], CellView>> = { oci: OCI, docker: DOCKER };
