import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { DriverSurroundings } from '../../../src/drivers/kind.ts';
import type { Configuration, MountEntry } from './configuration.ts';

const MiB = 1024 * 1024;
const PERIOD_US = 100_000;
const TOOLS = '/opt/tools';
/** Ids that nobody on the host has. */
const FIRST_ID = 0x70000000;
const IDS = 65_536;
const BLOCKS = 1500;

/** What is in the environment of every image of the double. */
export const IMAGE_PATH = `PATH=${TOOLS}:/usr/local/bin:/usr/bin:/bin`;

const DEFAULT_CAPABILITIES = [
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'NET_RAW',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
].map((name) => `CAP_${name}`);

const ETC: Readonly<Record<string, string>> = {
  passwd: 'root:x:0:0::/root:/bin/sh\nrunner:x:1000:1000::/tmp:/bin/bash\n',
  group: 'root:x:0:\nrunner:x:1000:\n',
  hosts: '127.0.0.1 localhost\n',
};

/**
 * A bundle for a runtime of this machine, made from what the CLI was told and from nothing else: whatever the caller
 * forgot to forbid is allowed in it.
 */
export function writeBundle(
  folder: string,
  configuration: Configuration,
  tools: DriverSurroundings['tools'],
): void {
  const first = FIRST_ID + Math.floor(Math.random() * BLOCKS) * IDS;
  const root = join(folder, 'root');
  makeRoot(root, first, configuration.mounts, tools);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(toConfig(configuration, { root, first, tools })));
}

const HOST_FOLDERS = ['usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];

function makeRoot(
  root: string,
  owner: number,
  mounts: readonly MountEntry[],
  tools: DriverSurroundings['tools'],
): void {
  const make = (path: string): void => {
    const at = join(root, path);
    if (existsSync(at)) return;
    make(join(path, '..'));
    mkdirSync(at, { mode: 0o755 });
    chownSync(at, owner, owner);
  };
  mkdirSync(root, { mode: 0o755 });
  chownSync(root, owner, owner);
  const own = [
    '/dev',
    '/etc/alternatives',
    '/home',
    '/opt',
    '/proc',
    '/root',
    '/run',
    '/sys/fs/cgroup',
    '/tmp',
    '/var/tmp',
    TOOLS,
  ];
  for (const path of [...own, ...mounts.map(({ destination }) => destination)]) make(path);
  // As every image has it.
  chmodSync(join(root, 'var/tmp'), 0o1777);
  // The runtime gives a mounted tmpfs the mode of the folder below it.
  for (const { destination, options } of mounts) {
    const mode = options.find((option) => option.startsWith('mode='))?.slice('mode='.length);
    if (mode !== undefined) chmodSync(join(root, destination), Number.parseInt(mode, 8));
  }
  for (const [name, text] of Object.entries(ETC)) writeFileSync(join(root, 'etc', name), text);
  for (const name of HOST_FOLDERS.filter((entry) => existsSync(`/${entry}`))) {
    if (lstatSync(`/${name}`).isSymbolicLink()) symlinkSync(readlinkSync(`/${name}`), join(root, name));
    else make(`/${name}`);
  }
  for (const { name } of tools) writeFileSync(join(root, TOOLS, name), '');
}

interface Place {
  readonly root: string;
  readonly first: number;
  readonly tools: DriverSurroundings['tools'];
}

function toConfig(configuration: Configuration, place: Place): object {
  const { initProcess, resources, networks } = configuration;
  const capabilities = toCapabilities(configuration);
  const mappings = [{ containerID: 0, hostID: place.first, size: IDS }];
  return {
    ociVersion: '1.0.2',
    hostname: configuration.id,
    root: { path: place.root, readonly: configuration.readOnly },
    process: {
      terminal: false,
      user: toUser(configuration),
      args: [initProcess.executable, ...initProcess.arguments],
      env: initProcess.environment,
      cwd: initProcess.workingDirectory,
      noNewPrivileges: false,
      capabilities: {
        bounding: capabilities,
        effective: capabilities,
        inheritable: [],
        permitted: capabilities,
        ambient: [],
      },
      rlimits: initProcess.rlimits.map(({ hard, limit, soft }) => ({ type: limit, hard, soft })),
    },
    mounts: toMounts(configuration, place),
    linux: {
      cgroupsPath: `/apple-double-${configuration.id}`,
      resources: {
        memory: { limit: resources.memoryInBytes, swap: resources.memoryInBytes },
        cpu: { quota: resources.cpus * PERIOD_US, period: PERIOD_US },
      },
      uidMappings: mappings,
      gidMappings: mappings,
      // Without `--network none` a container has a way out; here it is that of the host.
      namespaces: [
        'user',
        'pid',
        'ipc',
        'uts',
        'mount',
        'cgroup',
        ...(networks.length === 0 ? ['network'] : []),
      ].map((type) => ({ type })),
      maskedPaths: ['/proc/kcore', '/proc/keys', '/proc/timer_list'],
      readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
    },
  };
}

function toUser({ initProcess: { user } }: Configuration): { uid: number; gid: number } {
  if ('id' in user) return user.id;
  const id = user.raw.userString === 'runner' ? 1000 : 0;
  return { uid: id, gid: id };
}

function toCapabilities({ capAdd, capDrop }: Configuration): string[] {
  const kept = capDrop.includes('ALL') ? [] : DEFAULT_CAPABILITIES.filter((name) => !capDrop.includes(name));
  return [...new Set([...kept, ...capAdd.filter((name) => name !== 'ALL')])];
}

function toMounts({ mounts, shmSize }: Configuration, { tools }: Place): object[] {
  const bind = (source: string, destination: string, ...options: string[]) => ({
    source,
    destination,
    type: 'bind',
    options: ['bind', ...options],
  });
  const memory = (destination: string, ...options: string[]) => ({
    destination,
    type: 'tmpfs',
    source: 'tmpfs',
    options: ['nosuid', 'nodev', ...options],
  });
  const real = HOST_FOLDERS.filter(
    (name) => existsSync(`/${name}`) && !lstatSync(`/${name}`).isSymbolicLink(),
  );
  return [
    { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
    ...real.map((name) => bind(`/${name}`, `/${name}`, 'ro')),
    ...(existsSync('/etc/alternatives') ? [bind('/etc/alternatives', '/etc/alternatives', 'ro')] : []),
    ...tools.map(({ name, path }) => bind(path, `${TOOLS}/${name}`, 'ro')),
    memory('/dev', 'mode=755', 'size=65536k'),
    {
      destination: '/dev/pts',
      type: 'devpts',
      source: 'devpts',
      options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'],
    },
    memory('/dev/shm', 'noexec', 'mode=1777', `size=${shmSize ?? 64 * MiB}`),
    {
      destination: '/sys/fs/cgroup',
      type: 'cgroup',
      source: 'cgroup',
      options: ['ro', 'nosuid', 'noexec', 'nodev'],
    },
    ...mounts.map(({ destination, options, source, type }) =>
      'tmpfs' in type ? memory(destination, ...options) : bind(source, destination, ...options),
    ),
  ];
}
