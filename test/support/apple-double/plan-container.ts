import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { failure, usageError } from './cli-error.ts';
import type { Configuration, Image, InitProcess, MountEntry, UserEntry } from './configuration.ts';
import type { Options } from './parse-arguments.ts';

const MiB = 1024 * 1024;
const LEAST_MEMORY = 200 * MiB;
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/;
const ULIMITS =
  'core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack'.split(
    ' ',
  );
const UNLIMITED = Number.MAX_SAFE_INTEGER;
const CAPABILITIES =
  'ALL AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM'.split(
    ' ',
  );

/** Of the parser's second look, so with its exit code. */
export function validateRun(command: string, options: Options): void {
  const hasDns = ['dns', 'dns-domain', 'dns-option', 'dns-search'].some((key) => options.has(key));
  if (options.has('no-dns') && hasDns)
    throw usageError(command, '`--no-dns` cannot be used with DNS configuration flags');
}

export function requireName(id: string): void {
  if (!NAME.test(id) || id.length > 63) throw failure(`container ID ${id} is not a valid container ID`);
}

/** `512m`: everything is binary, and cut to whole MiB. */
export function readSize(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text);
  if (match === null) throw failure('invalid size');
  const [, digits = '', unit = ''] = match;
  const powers = ['b', 'k', 'm', 'g', 't', 'p'];
  const power = unit === '' ? 0 : powers.indexOf((unit[0] ?? '').toLowerCase());
  if (power < 0 || !/^([bkmgtp])?(b|ib)?$/i.test(unit)) throw failure(`invalid symbol: ${unit}`);
  return Math.floor((Number(digits) * 1024 ** power) / MiB) * MiB;
}

/** In the order in which the CLI looks at its options. */
export function planContainer(
  id: string,
  options: Options,
  given: { readonly image: Image; readonly words: readonly string[]; readonly networks: readonly string[] },
): Configuration {
  const { image } = given;
  const initProcess = planProcess(options, image, given.words);
  const memoryInBytes = options.has('memory') ? readSize(options.one('memory') ?? '') : 1024 * MiB;
  const mounts = planMounts(options);
  const shmSize = options.has('shm-size') ? readSize(options.one('shm-size') ?? '') : undefined;
  const networks = planNetworks(options, id, given.networks);
  const labels = planLabels(options.all('label'));
  const capAdd = options.all('cap-add').map(readCapability);
  const capDrop = options.all('cap-drop').map(readCapability);
  if (memoryInBytes < LEAST_MEMORY)
    throw failure(`minimum memory amount allowed is 200 MiB (got ${memoryInBytes} bytes)`);
  return {
    capAdd,
    capDrop,
    creationDate: now(),
    ...(options.has('no-dns') ? {} : { dns: { nameservers: [], options: [], searchDomains: [] } }),
    id,
    image: { descriptor: image.descriptor, reference: image.reference },
    initProcess,
    labels,
    mounts,
    networks,
    platform: { architecture: 'arm64', os: 'linux' },
    publishedPorts: [],
    publishedSockets: [],
    readOnly: options.has('read-only'),
    resources: { cpuOverhead: 1, cpus: Number(options.one('cpus') ?? 4), memoryInBytes },
    rosetta: false,
    runtimeHandler: 'container-runtime-linux',
    ...(shmSize === undefined ? {} : { shmSize }),
    ssh: options.has('ssh'),
    sysctls: {},
    useInit: options.has('init'),
    virtualization: options.has('virtualization'),
  };
}

/** ISO 8601, whole seconds. */
export function now(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, 'Z');
}

function planProcess(options: Options, { config }: Image, words: readonly string[]): InitProcess {
  const environment = readEnvironment([...(config.Env ?? []), ...options.all('env')]);
  const entrypoint = options.has('entrypoint')
    ? [options.one('entrypoint') ?? '']
    : (config.Entrypoint ?? []);
  const command = words.length > 0 || options.has('entrypoint') ? words : (config.Cmd ?? []);
  const [executable, ...rest] = [...entrypoint, ...command];
  if (executable === undefined) throw failure('command/entrypoint not specified for container process');
  return {
    arguments: rest,
    environment,
    executable,
    rlimits: planLimits(options.all('ulimit')),
    supplementalGroups: [],
    terminal: options.has('tty'),
    user: planUser(options.one('user') ?? config.User ?? '0:0'),
    workingDirectory: options.one('workdir') ?? config.WorkingDir ?? '/',
  };
}

/** The last one of a name wins; a bare name is taken from the environment of the CLI. */
function readEnvironment(entries: readonly string[]): string[] {
  const values = new Map<string, string>();
  for (const entry of entries) {
    const [name = '', ...rest] = entry.split('=');
    const inherited = process.env[name];
    if (entry.includes('=')) values.set(name, rest.join('='));
    else if (inherited !== undefined) values.set(name, inherited);
  }
  return [...values].map(([name, value]) => `${name}=${value}`);
}

export function planUser(text: string): UserEntry {
  const match = /^(\d+)(?::(\d+))?$/.exec(text);
  if (match === null) return { raw: { userString: text } };
  return { id: { gid: Number(match[2] ?? match[1]), uid: Number(match[1]) } };
}

function planLimits(texts: readonly string[]): InitProcess['rlimits'] {
  const seen = new Set<string>();
  return texts.map((text) => {
    const [type = '', values = ''] = text.split('=');
    if (!ULIMITS.includes(type)) throw failure(`unsupported ulimit type: ${type}`);
    if (seen.has(type)) throw failure(`duplicate ulimit type: ${type}`);
    seen.add(type);
    const [soft = '', hard = soft] = values.split(':');
    const [softLimit, hardLimit] = [soft, hard].map(readLimit);
    if (softLimit === undefined || hardLimit === undefined || softLimit > hardLimit)
      throw failure(`invalid ulimit format: ${text}`);
    return { hard: hardLimit, limit: `RLIMIT_${type.toUpperCase()}`, soft: softLimit };
  });
}

function readLimit(text: string): number | undefined {
  if (text === 'unlimited' || text === '-1') return UNLIMITED;
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

function planMounts(options: Options): MountEntry[] {
  return [
    // The path as it is: whoever writes docker's options here gets a folder of that name.
    ...options
      .all('tmpfs')
      .map((destination) => ({ destination, options: [], source: 'tmpfs', type: { tmpfs: {} } })),
    ...options.all('volume').map(readVolume),
    ...options.all('mount').map(readMount),
  ];
}

function readVolume(text: string): MountEntry {
  const parts = text
    .replace(/^:/, '')
    .split(':')
    .filter((part) => part !== '');
  const [source = '', destination, choices] = parts;
  if (destination === undefined || parts.length > 3) throw failure(`invalid volume format ${text}`);
  if (!source.includes('/') && source !== '.' && source !== '..')
    throw failure(`named volumes are not part of this double: ${source}`);
  const path = resolve(source);
  if (!existsSync(path)) throw failure(`path '${path}' does not exist`);
  return {
    destination,
    options: choices === undefined ? [] : choices.split(','),
    source: path,
    type: { virtiofs: {} },
  };
}

function readMount(text: string): MountEntry {
  const given = new Map<string, string>();
  for (const part of text.split(',')) {
    const [key = '', value = ''] = part.split('=');
    const name = { src: 'source', destination: 'target', dst: 'target', ro: 'readonly' }[key] ?? key;
    if (!['type', 'source', 'target', 'readonly', 'size', 'mode'].includes(name))
      throw failure(`unknown directive ${key} when parsing mount ${text}`);
    given.set(name, value);
  }
  const [type, source, destination] = ['type', 'source', 'target'].map((name) => given.get(name) ?? '');
  if (destination === undefined || destination === '') throw failure('mount destination cannot be empty');
  if (type === 'tmpfs') {
    if (source !== '') throw failure('cannot specify source for tmpfs mount');
    const size = given.get('size');
    const mode = given.get('mode');
    return {
      destination,
      options: [
        ...(size === undefined ? [] : [`size=${readSize(size)}`]),
        ...(mode === undefined ? [] : [`mode=${mode}`]),
      ],
      source: '',
      type: { tmpfs: {} },
    };
  }
  if (type !== '' && type !== 'bind' && type !== 'virtiofs') throw failure(`unsupported mount type ${type}`);
  const path = resolve(source ?? '');
  if (!existsSync(path)) throw failure(`path '${path}' does not exist`);
  if (!statSync(path).isDirectory()) throw failure(`path '${path}' is not a directory`);
  return { destination, options: given.has('readonly') ? ['ro'] : [], source: path, type: { virtiofs: {} } };
}

function planNetworks(options: Options, id: string, known: readonly string[]): Configuration['networks'] {
  const asked = options.all('network');
  if (asked.includes('none')) {
    if (asked.length > 1) throw failure('no other networks may be created along with network none');
    return [];
  }
  const names = asked.length === 0 ? ['default'] : asked.map((text) => text.split(',')[0] ?? '');
  for (const name of names) if (!known.includes(name)) throw failure(`network ${name} not found`);
  return names.map((network) => ({ network, options: { hostname: id, mtu: 1280 } }));
}

export function planLabels(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const parts = text.split('=');
      if (parts.length > 2 || parts[0] === '') throw failure(`invalid label format ${text}`);
      return [parts[0] ?? '', parts[1] ?? ''];
    }),
  );
}

function readCapability(text: string): string {
  const name = text.toUpperCase().replace(/^CAP_/, '');
  if (!CAPABILITIES.includes(name)) throw failure(`invalid capability: ${text}`);
  return name === 'ALL' ? name : `CAP_${name}`;
}
