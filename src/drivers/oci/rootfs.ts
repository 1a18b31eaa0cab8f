import { chmod, cp, mkdir, readdir, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { WORKSPACE_IN_CELL } from '../../core/cell.ts';
import { CELL_UID, GUEST_IN_CELL } from '../linux/cell-paths.ts';
import type { DriverSurroundings } from '../kind.ts';
import type { BindMount } from './config-json.ts';
import { FIFO_NAMES } from './fifo-kit.ts';

export interface RootfsOptions {
  /** Where the folder is made. */
  readonly directory: string;
  /** A folder to use as root instead of the host's `/usr`. */
  readonly base: string | undefined;
  readonly guest: string;
  readonly tools: DriverSurroundings['tools'];
  /** Its cells may have a workspace. */
  readonly workspaces: boolean;
}

export interface Rootfs {
  readonly path: string;
  readonly readOnly: readonly BindMount[];
  readonly devices: readonly BindMount[];
}

const TOOLS = '/opt/hotcell/bin';
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom'];

export const CHANNEL_IN_CELL = '/run/hotcell';

/** What a program finds in its environment unless the request says otherwise. */
export const BASE_ENV: Readonly<Record<string, string>> = {
  PATH: `${TOOLS}:/usr/local/bin:/usr/bin:/bin`,
  HOME: '/tmp',
  LANG: 'C.UTF-8',
};

/** The invented /etc: one user, no host names, no secrets. */
const ETC: Readonly<Record<string, string>> = {
  passwd: `root:x:0:0::/:/usr/sbin/nologin\nrunner:x:${CELL_UID}:${CELL_UID}::/tmp:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n`,
  group: `root:x:0:\nrunner:x:${CELL_UID}:\nnogroup:x:65534:\n`,
  hosts: '127.0.0.1 localhost\n::1 localhost\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
  'resolv.conf': '',
};

/**
 * Makes the root that all cells of this instance share, read-only: mount points, the invented /etc, and a /dev whose
 * /dev/shm is the cell's own /tmp, so that /tmp stays the only writable place and POSIX semaphores still work.
 */
export async function makeRootfs(options: RootfsOptions): Promise<Rootfs> {
  const { directory } = options;
  for (const folder of [
    'dev-source/pts',
    'root/dev',
    'root/etc',
    'root/proc',
    'root/tmp',
    ...(options.workspaces ? [`root${WORKSPACE_IN_CELL}`] : []),
    `root${GUEST_IN_CELL}`,
    `root${TOOLS}`,
  ]) {
    await mkdir(join(directory, folder), { recursive: true });
  }
  await mkdir(join(directory, 'root', CHANNEL_IN_CELL), { recursive: true });
  // Mount points for a runtime that gets the FIFOs one by one.
  for (const name of FIFO_NAMES) await writeFile(join(directory, 'root', CHANNEL_IN_CELL, name), '');
  // Some runtimes give the mounted tmpfs the mode of the folder below it.
  await chmod(join(directory, 'root/tmp'), 0o1777);
  await makeDevices(join(directory, 'dev-source'));
  for (const [name, text] of Object.entries(ETC)) await writeFile(join(directory, 'root/etc', name), text);
  for (const tool of options.tools) await writeFile(join(directory, 'root', TOOLS, tool.name), '');

  const system = await bindSystem(options.base, join(directory, 'root'));
  return {
    path: join(directory, 'root'),
    readOnly: [
      ...system,
      { source: options.guest, destination: GUEST_IN_CELL },
      ...options.tools.map((tool) => ({ source: tool.path, destination: `${TOOLS}/${tool.name}` })),
      { source: join(directory, 'dev-source'), destination: '/dev' },
    ],
    devices: DEVICES.map((name) => ({ source: `/dev/${name}`, destination: `/dev/${name}` })),
  };
}

async function makeDevices(directory: string): Promise<void> {
  for (const name of DEVICES) await writeFile(join(directory, name), '');
  const links = {
    fd: '/proc/self/fd',
    stdin: '/proc/self/fd/0',
    stdout: '/proc/self/fd/1',
    stderr: '/proc/self/fd/2',
    shm: '/tmp',
    ptmx: 'pts/ptmx',
  };
  for (const [name, target] of Object.entries(links)) await symlink(target, join(directory, name));
}

const HOST_FOLDERS = ['usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];
/** Folders that every cell gets of its own, whatever the base has. */
const OWN_FOLDERS = new Set(['dev', 'etc', 'home', 'opt', 'proc', 'root', 'run', 'sys', 'tmp']);

/**
 * Programs and libraries of the base (the host, or a folder), and of its /etc only what programs are links to.
 * SECURITY: naming the host's folders one by one keeps /home, /root, /var and the real /etc out.
 */
async function bindSystem(base: string | undefined, root: string): Promise<BindMount[]> {
  const from = base ?? '/';
  const names =
    base === undefined
      ? HOST_FOLDERS.filter((name) => existsSync(`/${name}`))
      : (await readdir(base)).filter((name) => !OWN_FOLDERS.has(name));
  const binds: BindMount[] = [];
  for (const name of names) {
    const source = join(from, name);
    const target = await readlink(source).catch(() => undefined);
    if (target !== undefined) await symlink(target, join(root, name));
    else if ((await stat(source)).isDirectory()) {
      await mkdir(join(root, name));
      binds.push({ source, destination: `/${name}` });
    }
  }
  for (const name of ['alternatives', 'ld.so.cache']) {
    const source = join(from, 'etc', name);
    if (existsSync(source))
      await cp(source, join(root, 'etc', name), { recursive: true, verbatimSymlinks: true });
  }
  return binds;
}
