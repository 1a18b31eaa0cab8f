import { existsSync, readFileSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Controllers that keep our promises. v1 counts CPU time in a controller of its own. */
const V1_CONTROLLERS = ['cpu', 'cpuacct', 'memory', 'pids'] as const;
const V2_CONTROLLERS = ['cpu', 'memory', 'pids'] as const;
type Controller = (typeof V1_CONTROLLERS)[number];

/** Where and how cgroups can be made on this machine. */
export type CgroupLayout =
  | {
      readonly version: 1;
      /** Mount point of each controller. */
      readonly mounts: Readonly<Record<Controller, string>>;
      /** Every mounted hierarchy, since a runtime makes its folders in all of them. */
      readonly hierarchies: readonly string[];
      /** A cgroup2 mount beside the v1 ones: crun refuses this unless the mount is hidden from it. */
      readonly hybrid: boolean;
    }
  | {
      readonly version: 2;
      /** The mount point, from which a runtime counts. */
      readonly top: string;
      /** The folder that is ours to divide: the mount point itself, or a part of it that was delegated. */
      readonly root: string;
    }
  | {
      readonly version: 'none';
      readonly problem: string;
      /** Somebody with the right to could hand a part of the hierarchy to us. */
      readonly delegable: boolean;
    };

interface Mount {
  readonly point: string;
  readonly type: string;
  readonly options: readonly string[];
}

export function parseMounts(mountinfo: string): Mount[] {
  return mountinfo
    .split('\n')
    .filter((line) => line.includes(' - '))
    .map((line) => {
      const [before = '', after = ''] = line.split(' - ');
      const [type = '', , superOptions = ''] = after.split(' ');
      return { point: before.split(' ')[4] ?? '', type, options: superOptions.split(',') };
    });
}

/** Reads the layout off /proc/self/mountinfo. Pure, so that every kind of machine can be tried in a test. */
export function toCgroupLayout(mountinfo: string): CgroupLayout {
  const mounts = parseMounts(mountinfo);
  const v1 = mounts.filter((mount) => mount.type === 'cgroup');
  const v2 = mounts.find((mount) => mount.type === 'cgroup2');
  if (v1.length === 0) {
    return v2 === undefined
      ? { version: 'none', problem: 'no cgroup file system is mounted', delegable: false }
      : { version: 2, top: v2.point, root: v2.point };
  }
  const pointOf = (name: Controller): string => v1.find((mount) => mount.options.includes(name))?.point ?? '';
  const points = {
    cpu: pointOf('cpu'),
    cpuacct: pointOf('cpuacct'),
    memory: pointOf('memory'),
    pids: pointOf('pids'),
  };
  const missing = V1_CONTROLLERS.filter((name) => points[name] === '');
  if (missing.length > 0)
    return {
      version: 'none',
      problem: `cgroup controllers not mounted: ${missing.join(', ')}`,
      delegable: false,
    };
  return {
    version: 1,
    mounts: points,
    hierarchies: [...new Set([...v1, ...(v2 === undefined ? [] : [v2])].map((mount) => mount.point))],
    hybrid: v2 !== undefined,
  };
}

export async function readCgroupLayout(): Promise<CgroupLayout> {
  const layout = toCgroupLayout(readFileSync('/proc/self/mountinfo', 'utf8'));
  if (layout.version === 'none') return layout;
  return layout.version === 1 ? checkV1(layout) : checkV2(layout.top);
}

async function checkV1(layout: CgroupLayout & { version: 1 }): Promise<CgroupLayout> {
  const closed = await unwritable(Object.values(layout.mounts));
  if (closed === undefined) return layout;
  return {
    version: 'none',
    problem: `${closed} cannot be written (cgroup v1 cannot be delegated to a plain user)`,
    delegable: false,
  };
}

/** Where the processes go that were in the delegated cgroup itself: one with processes cannot be divided. */
export const ASIDE = 'hotcell-aside';

/**
 * The folders that may have been delegated to a process in `own`, most likely first. systemd starts a service or scope
 * in the very cgroup that it delegates; with DelegateSubgroup= in one below, which has no controllers of its own.
 */
export function toDelegated(top: string, own: string): string[] {
  if (own === '/') return [top];
  const folder = join(top, own);
  return basename(folder) === ASIDE ? [dirname(folder)] : [folder, dirname(folder)];
}

/** Root uses the top of the hierarchy; anybody else the part that was delegated, which is where we are. */
async function checkV2(top: string): Promise<CgroupLayout> {
  const own = readFileSync('/proc/self/cgroup', 'utf8').match(/^0::(.*)$/m)?.[1] ?? '/';
  const [first = top, ...others] = process.geteuid?.() === 0 ? [top] : toDelegated(top, own);
  const layout = await checkDelegated(top, first);
  for (const root of others) {
    if (layout.version === 2) break;
    const other = await checkDelegated(top, root);
    if (other.version === 2) return other;
  }
  return layout;
}

async function checkDelegated(top: string, root: string): Promise<CgroupLayout> {
  const closed = await unwritable([
    root,
    ...['procs', 'subtree_control'].map((name) => join(root, `cgroup.${name}`)),
  ]);
  if (closed !== undefined)
    return { version: 'none', problem: `${closed} cannot be written: nothing is delegated`, delegable: true };
  const available = existsSync(join(root, 'cgroup.controllers'))
    ? readFileSync(join(root, 'cgroup.controllers'), 'utf8').split(/\s+/)
    : [];
  const missing = V2_CONTROLLERS.filter((name) => !available.includes(name));
  if (missing.length > 0)
    return {
      version: 'none',
      problem: `cgroup controllers not delegated: ${missing.join(', ')}`,
      delegable: true,
    };
  return { version: 2, top, root };
}

async function unwritable(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const open = await access(path, constants.W_OK).then(
      () => true,
      () => false,
    );
    if (!open) return path;
  }
  return undefined;
}
