import { describe, expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../core/limits.ts';
import { toMaskablePaths } from '../linux/masked-paths.ts';
import { toConfigJson, type ConfigInput } from './config-json.ts';
import { toSeccompProfile, type SeccompProfile } from '../linux/seccomp.ts';

const MiB = 1024 ** 2;
const INPUT: ConfigInput = {
  argv: ['sh', '/opt/hotcell/guest/init.sh'],
  env: { HOME: '/tmp', TEXT: 'a=b c' },
  cwd: '/tmp',
  hostname: 'code-runner-lua-00ff',
  rootfs: '/run/hotcell/i/rootfs/root',
  identity: {
    uid: 1000,
    uidMappings: [
      { containerID: 0, hostID: 1879048192, size: 1 },
      { containerID: 1000, hostID: 1879048193, size: 1 },
    ],
    gidMappings: [
      { containerID: 0, hostID: 1879048192, size: 1 },
      { containerID: 1000, hostID: 1879048195, size: 1 },
    ],
  },
  capabilities: [],
  limits: DEFAULT_LIMITS,
  readOnly: [
    { source: '/usr', destination: '/usr' },
    { source: '/run/hotcell/i/rootfs/dev-source', destination: '/dev' },
  ],
  folders: [],
  writableBind: [],
  devices: [{ source: '/dev/null', destination: '/dev/null' }],
  channel: [{ source: '/run/hotcell/i/kits/0', destination: '/run/hotcell', writable: false }],
  cgroupsPath: '/hotcell/i/c/cell',
  seccomp: undefined,
  sysctl: {},
  terminals: false,
  workspace: undefined,
  limitsProcesses: false,
  labels: { 'hotcell.owner': 'i' },
};
const GVISOR: Partial<ConfigInput> = {
  limitsProcesses: true,
  channel: [
    { source: '/kits/0/in', destination: '/run/hotcell/in', writable: false },
    { source: '/kits/0/out', destination: '/run/hotcell/out', writable: true },
  ],
};
const EVERYTHING = toMaskablePaths(() => true);

interface Mount {
  readonly destination: string;
  readonly type: string;
  readonly source: string;
  readonly options: readonly string[];
}

interface OciConfig {
  readonly root: { readonly path: string; readonly readonly: boolean };
  readonly process: {
    readonly user: unknown;
    readonly noNewPrivileges: boolean;
    readonly capabilities: Record<string, string[]>;
    readonly rlimits: { readonly type: string; readonly hard: number; readonly soft: number }[];
  };
  readonly mounts: Mount[];
  readonly linux: {
    readonly namespaces: { readonly type: string; readonly path?: string }[];
    readonly maskedPaths: string[];
    readonly readonlyPaths: string[];
    readonly seccomp?: SeccompProfile;
    readonly cgroupsPath?: string;
    readonly uidMappings: unknown;
    readonly gidMappings: unknown;
  };
}

function configOf(changes: Partial<ConfigInput> = {}): OciConfig {
  const config: unknown = toConfigJson({ ...INPUT, ...changes }, EVERYTHING);
  return config as OciConfig;
}

describe('privileges', () => {
  test('[SC-03] no capability in any set', () => {
    expect(configOf().process.capabilities).toEqual({
      bounding: [],
      effective: [],
      inheritable: [],
      permitted: [],
      ambient: [],
    });
  });

  test('[SC-03] none can be gained', () => {
    expect(configOf().process.noNewPrivileges).toBe(true);
  });

  test('[SC-03] a user that is not root, mapped to nobody of the host', () => {
    const { process, linux } = configOf();
    expect(process.user).toEqual({ uid: 1000, gid: 1000 });
    expect(linux).toMatchObject({
      uidMappings: INPUT.identity.uidMappings,
      gidMappings: INPUT.identity.gidMappings,
    });
  });

  test('[SC-03] seven namespaces, each a new one', () => {
    expect(configOf().linux.namespaces).toEqual(
      ['user', 'pid', 'network', 'ipc', 'uts', 'mount', 'cgroup'].map((type) => ({ type })),
    );
  });

  test('[SC-03] the filter of system calls is passed on', () => {
    const seccomp = toSeccompProfile('x64');
    expect(configOf({ seccomp }).linux.seccomp).toEqual(seccomp);
  });
});

describe('files', () => {
  test('[SC-03] the root is read-only', () => {
    expect(configOf().root).toEqual({ path: INPUT.rootfs, readonly: true });
  });

  test.each([
    ['a plain runtime', {}, ['/dev/null']],
    ['gVisor', GVISOR, ['/dev/null', '/run/hotcell/out']],
  ])(
    '[SC-03] on %s every bind is read-only but devices and the FIFOs that gVisor writes',
    (_on, changes, writable) => {
      const binds = configOf(changes).mounts.filter((mount) => mount.type === 'bind');
      const open = binds.filter((mount) => !mount.options.includes('ro'));
      expect(open.map((mount) => mount.destination)).toEqual(writable);
    },
  );

  test.each([
    ['a plain runtime', {}],
    ['gVisor', GVISOR],
  ])('[SC-03] on %s no mount honours set-user-id', (_on, changes) => {
    expect(configOf(changes).mounts.filter((mount) => !mount.options.includes('nosuid'))).toEqual([]);
  });

  test('[SC-03] devices work only where they are laid one by one', () => {
    const open = configOf().mounts.filter((mount) => !mount.options.includes('nodev'));
    expect(open.map((mount) => mount.destination)).toEqual(['/dev/null']);
  });

  test.each([
    [64 * MiB, 'nr_inodes=16384'],
    [MiB, 'nr_inodes=1024'],
  ])('[CX-09] /tmp holds %i bytes and a bounded number of files', (diskBytes, inodes) => {
    const { mounts } = configOf({ limits: { ...DEFAULT_LIMITS, diskBytes } });
    const [tmpfs, ...others] = mounts.filter((mount) => mount.type === 'tmpfs');
    expect(tmpfs).toMatchObject({ destination: '/tmp' });
    expect(tmpfs?.options).toEqual(expect.arrayContaining([`size=${diskBytes}`, inodes]));
    expect(others).toEqual([]);
  });

  test('[SC-03] what lies over /dev comes after it', () => {
    const order = configOf().mounts.map((mount) => mount.destination);
    expect(order.indexOf('/dev/null')).toBeGreaterThan(order.indexOf('/dev'));
  });
});

describe('what /proc tells', () => {
  test.each([
    '/proc/kcore',
    '/proc/kallsyms',
    '/proc/keys',
    '/proc/kmsg',
    '/proc/timer_list',
    '/proc/sched_debug',
  ])('[SC-03] %s is masked', (path) => {
    expect(configOf().linux.maskedPaths).toContain(path);
  });

  test.each(['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus', '/proc/fs'])(
    '[SC-03] %s is read-only',
    (path) => {
      expect(configOf().linux.readonlyPaths).toContain(path);
    },
  );

  test('only what this kernel has is named', () => {
    const paths = toMaskablePaths((path) => path === '/proc/kcore' || path === '/proc/sys');
    expect(paths).toEqual({ masked: ['/proc/kcore'], readOnly: ['/proc/sys'] });
  });
});

describe('limits', () => {
  const rlimits = (changes: Partial<ConfigInput>) =>
    Object.fromEntries(configOf(changes).process.rlimits.map(({ type, hard, soft }) => [type, [hard, soft]]));

  test('[CX-09] open files and core dumps, hard and soft', () => {
    expect(rlimits({})).toEqual({ RLIMIT_NOFILE: [1024, 1024], RLIMIT_CORE: [0, 0] });
  });

  test('[CX-09] processes where a kernel of its own counts them', () => {
    expect(rlimits(GVISOR)).toMatchObject({ RLIMIT_NPROC: [64, 64] });
  });

  test('without cgroups there is no path for them', () => {
    expect(configOf({ cgroupsPath: undefined }).linux).not.toHaveProperty('cgroupsPath');
  });
});

describe('a session', () => {
  const mountAt = (destination: string, changes: Partial<ConfigInput>): Mount | undefined =>
    configOf(changes).mounts.find((mount) => mount.destination === destination);

  test('[TM-01, SC-03] has terminals of its own, and only a session has', () => {
    expect(mountAt('/dev/pts', { terminals: true })).toEqual({
      destination: '/dev/pts',
      type: 'devpts',
      source: 'devpts',
      options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'],
    });
    expect(mountAt('/dev/pts', {})).toBeUndefined();
  });

  test('[RS-13, RS-14] has its workspace and /tmp from a folder with a bound of its own', () => {
    const workspace = { folder: '/volumes/a' };
    const places = ['/workspace', '/tmp'].map((place) => mountAt(place, { workspace }));
    expect(places.map((mount) => mount?.source)).toEqual(['/volumes/a', '/volumes/a/.tmp']);
    for (const mount of places) expect(mount?.options).toEqual(['bind', 'nosuid', 'nodev']);
  });

  test('[RS-13] has in memory no more than the limit, both places together', () => {
    const workspace = { folder: undefined };
    const sizes = ['/workspace', '/tmp'].map((place) =>
      Number(/size=(\d+)/.exec(mountAt(place, { workspace })?.options.join() ?? '')?.[1]),
    );
    expect(sizes.reduce((sum, size) => sum + size)).toBe(DEFAULT_LIMITS.diskBytes);
    expect(mountAt('/workspace', {})).toBeUndefined();
  });
});

describe('folders of the host', () => {
  const folders = [
    { source: '/trees/0', destination: '/workspace', writable: true },
    { source: '/cells/0/pointer', destination: '/workspace/.git', writable: false },
    { source: '/cells/base/objects', destination: '/repo/objects', writable: false },
  ];
  const binds = configOf({ folders, writableBind: ['rnosuid'] }).mounts.filter(({ source }) =>
    /^\/(trees|cells)/.test(source),
  );

  test('[FL-09] come in the order given, so that one may lie in another', () => {
    expect(binds.map(({ destination }) => destination)).toEqual([
      '/workspace',
      '/workspace/.git',
      '/repo/objects',
    ]);
  });

  test('[FL-09, SC-03] are read-only unless it is said, and never honour set-user-id or devices', () => {
    expect(binds.map(({ options }) => options)).toEqual([
      ['bind', 'nosuid', 'rnosuid', 'nodev'],
      ['bind', 'nosuid', 'ro', 'nodev'],
      ['bind', 'nosuid', 'ro', 'nodev'],
    ]);
  });
});

test('[CX-12] kernel settings are passed on, where there are any', () => {
  const sysctl = { 'kernel.shm_rmid_forced': '1' };
  expect(configOf({ sysctl }).linux).toMatchObject({ sysctl });
  expect(configOf().linux).not.toHaveProperty('sysctl');
});

test('[SC-03] a whole config', () => {
  const { mounts, linux, ...rest } = toConfigJson(INPUT, {
    masked: ['/proc/kcore'],
    readOnly: ['/proc/sys'],
  });
  const toLines = (part: object): string[] =>
    Object.entries(part).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  const lines = [...toLines(rest), ...toLines(linux as object), ...toLines(mounts as object)];
  expect(lines.join('\n')).toMatchInlineSnapshot(`
    "ociVersion "1.0.2"
    hostname "code-runner-lua-00ff"
    annotations {"hotcell.owner":"i"}
    root {"path":"/run/hotcell/i/rootfs/root","readonly":true}
    process {"terminal":false,"user":{"uid":1000,"gid":1000},"args":["sh","/opt/hotcell/guest/init.sh"],"env":["HOME=/tmp","TEXT=a=b c"],"cwd":"/tmp","noNewPrivileges":true,"capabilities":{"bounding":[],"effective":[],"inheritable":[],"permitted":[],"ambient":[]},"rlimits":[{"type":"RLIMIT_NOFILE","hard":1024,"soft":1024},{"type":"RLIMIT_CORE","hard":0,"soft":0}]}
    cgroupsPath "/hotcell/i/c/cell"
    namespaces [{"type":"user"},{"type":"pid"},{"type":"network"},{"type":"ipc"},{"type":"uts"},{"type":"mount"},{"type":"cgroup"}]
    uidMappings [{"containerID":0,"hostID":1879048192,"size":1},{"containerID":1000,"hostID":1879048193,"size":1}]
    gidMappings [{"containerID":0,"hostID":1879048192,"size":1},{"containerID":1000,"hostID":1879048195,"size":1}]
    maskedPaths ["/proc/kcore"]
    readonlyPaths ["/proc/sys"]
    0 {"destination":"/proc","type":"proc","source":"proc","options":["nosuid","noexec","nodev"]}
    1 {"source":"/usr","destination":"/usr","type":"bind","options":["bind","nosuid","ro","nodev"]}
    2 {"source":"/run/hotcell/i/rootfs/dev-source","destination":"/dev","type":"bind","options":["bind","nosuid","ro","nodev"]}
    3 {"source":"/dev/null","destination":"/dev/null","type":"bind","options":["bind","nosuid","noexec"]}
    4 {"destination":"/tmp","type":"tmpfs","source":"tmpfs","options":["nosuid","nodev","mode=1777","size=67108864","nr_inodes=16384"]}
    5 {"source":"/run/hotcell/i/kits/0","destination":"/run/hotcell","type":"bind","options":["bind","nosuid","ro","nodev","noexec"]}"
  `);
});
