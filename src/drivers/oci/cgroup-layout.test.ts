import { expect, test } from 'vitest';
import { toCgroupLayout, toDelegated } from './cgroup-layout.ts';

/** One line of /proc/self/mountinfo for each mount. */
function mountinfo(...mounts: readonly [type: string, point: string, options: string][]): string {
  const root =
    '23 1 254:0 / / rw,relatime - ext4 /dev/root rw\n24 23 0:22 / /proc rw shared:5 - proc proc rw\n';
  const lines = mounts.map(
    ([type, point, options], index) =>
      `${30 + index} 23 0:${28 + index} / ${point} rw,nosuid,relatime shared:9 - ${type} ${type} rw,${options}\n`,
  );
  return root + lines.join('');
}

const V2: [string, string, string] = ['cgroup2', '/sys/fs/cgroup', 'nsdelegate'];
const HYBRID_V2: [string, string, string] = ['cgroup2', '/sys/fs/cgroup/unified', 'nsdelegate'];
const v1 = (folder: string): [string, string, string] => ['cgroup', `/sys/fs/cgroup/${folder}`, folder];
const ALL_V1 = ['cpu', 'cpuacct', 'memory', 'devices', 'pids'].map((name) => v1(name));

test('[CX-09] v2 alone', () => {
  expect(toCgroupLayout(mountinfo(V2))).toEqual({
    version: 2,
    top: '/sys/fs/cgroup',
    root: '/sys/fs/cgroup',
  });
});

test.each([
  ['in the delegated cgroup, or below it', '/a/run.scope', ['/cg/a/run.scope', '/cg/a']],
  ['where an earlier start moved its neighbours', '/a/run.scope/hotcell-aside', ['/cg/a/run.scope']],
  ['at the top of a cgroup namespace', '/', ['/cg']],
])('[CX-09] without root: %s', (_where, own, folders) => {
  expect(toDelegated('/cg', own)).toEqual(folders);
});

test('[CX-09] v1 alone, every hierarchy listed', () => {
  expect(toCgroupLayout(mountinfo(['tmpfs', '/sys/fs/cgroup', 'mode=755'], ...ALL_V1))).toEqual({
    version: 1,
    mounts: {
      cpu: '/sys/fs/cgroup/cpu',
      cpuacct: '/sys/fs/cgroup/cpuacct',
      memory: '/sys/fs/cgroup/memory',
      pids: '/sys/fs/cgroup/pids',
    },
    hierarchies: ['cpu', 'cpuacct', 'memory', 'devices', 'pids'].map((name) => `/sys/fs/cgroup/${name}`),
    hybrid: false,
  });
});

test('[CX-09] v1 with a v2 mount beside it is v1, and hybrid', () => {
  const layout = toCgroupLayout(mountinfo(...ALL_V1, HYBRID_V2));
  expect(layout).toMatchObject({ version: 1, hybrid: true });
  expect(layout).toHaveProperty('hierarchies', expect.arrayContaining(['/sys/fs/cgroup/unified']));
});

test('[CX-09] cpu and cpuacct in one hierarchy', () => {
  const layout = toCgroupLayout(mountinfo(v1('cpu,cpuacct'), v1('memory'), v1('pids')));
  expect(layout).toMatchObject({
    version: 1,
    mounts: { cpu: '/sys/fs/cgroup/cpu,cpuacct', cpuacct: '/sys/fs/cgroup/cpu,cpuacct' },
    hierarchies: ['/sys/fs/cgroup/cpu,cpuacct', '/sys/fs/cgroup/memory', '/sys/fs/cgroup/pids'],
  });
});

test('[CX-09] cpuset is not mistaken for cpu', () => {
  const layout = toCgroupLayout(mountinfo(v1('cpuset'), v1('cpuacct'), v1('memory'), v1('pids')));
  expect(layout).toMatchObject({ version: 'none', problem: 'cgroup controllers not mounted: cpu' });
});

test.each([
  ['no memory controller', ALL_V1.filter(([, point]) => !point.endsWith('memory')), 'not mounted: memory'],
  ['only what systemd needs', [v1('name=systemd')], 'not mounted: cpu, cpuacct, memory, pids'],
  ['nothing', [], 'no cgroup file system is mounted'],
])('[SC-04] %s is told as a problem', (_what, mounts, problem) => {
  const layout = toCgroupLayout(mountinfo(...mounts));
  expect(layout.version).toBe('none');
  expect(layout).toHaveProperty('problem', expect.stringContaining(problem));
});

test('[SC-04] a table that cannot be read means no cgroups', () => {
  expect(toCgroupLayout('').version).toBe('none');
});
