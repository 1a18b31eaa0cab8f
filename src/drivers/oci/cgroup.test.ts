import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../core/limits.ts';
import type { CgroupLayout } from './cgroup-layout.ts';
import { CellCgroup, toRuntimePath } from './cgroup.ts';
import { toCgroupPlan } from './cgroup-plan.ts';
import { toTraits } from './runtime-traits.ts';

const MiB = 1024 ** 2;
const V2 = { version: 2, top: '/cg', root: '/cg' } as const;
const V1: CgroupLayout & { version: 1 } = {
  version: 1,
  mounts: { cpu: '/cg/cpu,cpuacct', cpuacct: '/cg/cpu,cpuacct', memory: '/cg/memory', pids: '/cg/pids' },
  hierarchies: ['/cg/cpu,cpuacct', '/cg/memory', '/cg/pids'],
  hybrid: false,
};
const GVISOR = toTraits('runsc').overhead;

describe('the plan', () => {
  test('[CX-09] v2: every limit has its file', () => {
    const { folders, limits, quota } = toCgroupPlan(V2, '/hotcell/i/c', DEFAULT_LIMITS);
    expect(folders).toEqual(['/cg/hotcell/i/c']);
    expect(limits).toEqual([
      ['/cg/hotcell/i/c/memory.max', String(256 * MiB)],
      ['/cg/hotcell/i/c/memory.swap.max', '0'],
      ['/cg/hotcell/i/c/pids.max', '64'],
      ['/cg/hotcell/i/c/cpu.max', '50000 100000'],
    ]);
    expect(quota).toEqual(['/cg/hotcell/i/c/cpu.max', 'max']);
  });

  test('[CX-09] v1: every limit has its file, memory before memory with swap', () => {
    const { folders, limits, quota } = toCgroupPlan(V1, '/hotcell/i/c', DEFAULT_LIMITS);
    expect(folders).toEqual(
      ['/cg/cpu,cpuacct', '/cg/memory', '/cg/pids'].map((mount) => `${mount}/hotcell/i/c`),
    );
    expect(limits).toEqual([
      ['/cg/memory/hotcell/i/c/memory.limit_in_bytes', String(256 * MiB)],
      ['/cg/memory/hotcell/i/c/memory.memsw.limit_in_bytes', String(256 * MiB)],
      ['/cg/pids/hotcell/i/c/pids.max', '64'],
      ['/cg/cpu,cpuacct/hotcell/i/c/cpu.cfs_period_us', '100000'],
      ['/cg/cpu,cpuacct/hotcell/i/c/cpu.cfs_quota_us', '50000'],
    ]);
    expect(quota).toEqual(['/cg/cpu,cpuacct/hotcell/i/c/cpu.cfs_quota_us', '-1']);
  });

  test.each([
    ['v1', V1],
    ['v2', V2],
  ] as const)('[CX-09] gVisor on %s: what its own kernel needs comes on top', (_version, layout) => {
    const limits = new Map(
      toCgroupPlan(layout, '/c', DEFAULT_LIMITS, { overhead: GVISOR }).limits.map(([file, value]) => [
        file.replace(/.*\//, ''),
        value,
      ]),
    );
    const memory = limits.get('memory.max') ?? limits.get('memory.limit_in_bytes');
    expect(Number(memory)).toBe(256 * MiB + GVISOR.memoryBytes);
    expect(Number(limits.get('pids.max'))).toBe(GVISOR.threads + 64 * GVISOR.threadsPerProcess);
  });

  test.each([
    [0.001, '1000 100000'],
    [1, '100000 100000'],
    [2.5, '250000 100000'],
  ])('[CX-09] %d CPUs are %s', (cpus, value) => {
    const { limits } = toCgroupPlan(V2, '/c', { ...DEFAULT_LIMITS, cpus });
    expect(new Map(limits).get('/cg/c/cpu.max')).toBe(value);
  });
});

describe('the path for the runtime', () => {
  test.each([
    ['v1', V1, '/hotcell/i/c'],
    ['v2', V2, '/hotcell/i/c'],
    [
      'a delegated part of v2',
      { ...V2, root: '/cg/user.slice/run.scope' },
      '/user.slice/run.scope/hotcell/i/c',
    ],
  ] as const)('[CX-09] %s: from the mount point', (_version, layout, path) => {
    expect(toRuntimePath(layout, '/hotcell/i/c')).toBe(path);
  });
});

describe('a cgroup', () => {
  let root = '';
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'hotcell-cgroup-'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  /** A folder where the kernel's files would be: what is written can be read back, and counters can be made up. */
  async function create(counters: Record<string, string>, runtime: 'crun' | 'runsc' = 'crun') {
    const layout = { version: 2, top: root, root } as const;
    const folder = join(root, 'c');
    const creating = CellCgroup.create(layout, '/c', DEFAULT_LIMITS, toTraits(runtime));
    // The kernel makes these with the folder; here the first write makes the folder's existence known.
    const write = (): void => {
      for (const [name, text] of Object.entries(counters)) writeFileSync(join(folder, name), text);
    };
    for (;;) {
      try {
        write();
        break;
      } catch {
        await Promise.resolve();
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    return { cgroup: await creating, folder, write };
  }

  const COUNTERS = {
    'cpu.stat': 'usage_usec 12345\nuser_usec 12000\nsystem_usec 345\n',
    'memory.peak': `${10 * MiB}\n`,
    'memory.events': 'low 0\nmax 3\noom 0\noom_kill 0\n',
    'pids.events': 'max 0\n',
  };

  test('[CX-10] CPU time and peak memory are those of the kernel', async () => {
    const { cgroup } = await create(COUNTERS);
    expect(cgroup.usage()).toEqual({ cpuMs: 12.345, peakMemoryBytes: 10 * MiB, reached: [] });
  });

  test('[CX-08] counters that cannot be read, as when somebody removed the cgroup, are no error', async () => {
    const { cgroup, folder } = await create({});
    mkdirSync(join(folder, 'cpu.stat'));
    expect(cgroup.usage()).toEqual({ cpuMs: 0, peakMemoryBytes: undefined, reached: [] });
  });

  test('[CX-09] killed for memory and refused a process are told', async () => {
    const { cgroup } = await create({
      ...COUNTERS,
      'memory.events': 'oom 1\noom_kill 1\n',
      'pids.events': 'max 7\n',
    });
    expect(cgroup.usage().reached).toEqual(['memoryBytes', 'processes']);
  });

  test('[CX-09] the memory of a running cell can be changed, on top of what the runtime needs', async () => {
    const { cgroup, folder } = await create(COUNTERS, 'runsc');
    cgroup.limitMemory(512 * MiB);
    expect(readFileSync(join(folder, 'memory.max'), 'utf8')).toBe(String(512 * MiB + GVISOR.memoryBytes));
  });

  test('[CX-05] a cell that is to die is not kept waiting for its share of CPU', async () => {
    const { cgroup, folder } = await create(COUNTERS);
    await cgroup.kill();
    expect(readFileSync(join(folder, 'cpu.max'), 'utf8')).toBe('max');
  });
});
