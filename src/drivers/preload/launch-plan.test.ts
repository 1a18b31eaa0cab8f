import { describe, expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../core/limits.ts';
import { DEFAULT_REACH } from './command-walls.ts';
import { toLandlockPlan } from './landlock.ts';
import { toLaunchPlan, type KernelLayer, type LaunchSubject } from './launch-plan.ts';
import { syscallTable } from '../linux/syscall-numbers.ts';

const FULL: KernelLayer = { landlock: 7, seccomp: true, notify: true };
const SUBJECT: LaunchSubject = {
  request: { argv: ['bun', 'x.ts'], env: { A: 'b' }, cwd: '/work' },
  program: '/tools/bun',
  reach: { ...DEFAULT_REACH, programs: false },
  places: { workdir: '/work', folders: ['/code'], tools: ['/tools/bun', '/tools/node'] },
  limits: { ...DEFAULT_LIMITS, cpus: 2 },
  id: 0x70000000,
  closedPlaces: false,
  connector: ['/tools/bun', 'connect.ts'],
};

function plan(changes: Partial<LaunchSubject> = {}, kernel = FULL): ReturnType<typeof toLaunchPlan> {
  const table = syscallTable('x64');
  if (table === undefined) throw new Error('x64 is listed');
  return toLaunchPlan({ ...SUBJECT, ...changes }, kernel, table, 42);
}

const rightsOn = (planned: ReturnType<typeof plan>, path: string): number =>
  (planned.landlock?.rules ?? [])
    .filter((rule) => rule.path === path)
    .reduce((rights, rule) => rights | rule.rights, 0);
const [EXECUTE, WRITE, READ] = [1, 2, 4];

describe('a command', () => {
  test('[MC-02] may read programs and libraries, write its workdir, and reach nothing else', () => {
    const planned = plan();
    const paths = (planned.landlock?.rules ?? []).map(({ path }) => path);
    for (const path of [
      '/',
      '/etc',
      '/etc/passwd',
      '/home',
      '/root',
      '/proc',
      '/proc/self',
      '/dev',
      '/tmp',
      '/run',
      '/sys',
      '/var',
    ])
      expect(paths).not.toContain(path);
    expect(rightsOn(planned, '/work') & (READ | WRITE)).toBe(READ | WRITE);
    expect(rightsOn(planned, '/code') & (READ | WRITE)).toBe(READ);
    expect(planned.connector).toBeUndefined();
  });

  test('[MC-02] without programs may execute itself only', () => {
    const planned = plan();
    expect(rightsOn(planned, '/tools/bun') & EXECUTE).toBe(EXECUTE);
    for (const path of ['/usr', '/bin', '/tools/node', '/work', '/code'])
      expect(rightsOn(planned, path) & EXECUTE).toBe(0);
    expect(rightsOn(plan({ reach: DEFAULT_REACH }), '/usr') & EXECUTE).toBe(EXECUTE);
  });

  test('[MC-04] has the paths that were granted, as they were granted', () => {
    const planned = plan({ reach: { read: ['/data'], write: ['/out'], port: undefined, programs: false } });
    expect(rightsOn(planned, '/data') & (READ | WRITE | EXECUTE)).toBe(READ);
    expect(rightsOn(planned, '/out') & (READ | WRITE | EXECUTE)).toBe(READ | WRITE);
    expect(planned.landlock?.rules.filter(({ make }) => make).map(({ path }) => path)).toEqual(['/out']);
  });

  test('[MC-02] of root keeps no capability, but for paths that were granted or are closed', () => {
    const capabilities = (changes: Partial<LaunchSubject>): unknown => plan(changes).identity?.capabilities;
    const reach = { ...DEFAULT_REACH, read: ['/data'] };
    expect(capabilities({})).toEqual([]);
    expect(capabilities({ closedPlaces: true })).toEqual([2]);
    expect(capabilities({ reach })).toEqual([2]);
    expect(capabilities({ reach: { ...reach, write: ['/out'] } })).toEqual([1, 2]);
    expect(plan({ id: undefined }).identity).toBeUndefined();
  });

  test('[MC-06] has limits that the kernel keeps', () => {
    expect(plan().rlimits).toEqual(
      expect.arrayContaining([
        [4, 0],
        [6, DEFAULT_LIMITS.processes],
        [7, DEFAULT_LIMITS.openFiles],
        [1, DEFAULT_LIMITS.diskBytes],
      ]),
    );
    // It would count everything of the user who runs the server.
    expect(plan({ id: undefined }).rlimits.map(([resource]) => resource)).not.toContain(6);
    expect(plan().cores).toBe(2);
    expect(plan({ limits: DEFAULT_LIMITS }).cores).toBeUndefined();
  });

  test('[MC-04] connects by somebody else, and only with a port', () => {
    const reach = { ...DEFAULT_REACH, port: 8080 };
    expect(plan({ reach }).connector).toEqual({ port: 8080, argv: ['/tools/bun', 'connect.ts'] });
    expect(plan({ reach }, { ...FULL, notify: false }).connector).toBeUndefined();
  });
});

describe('Landlock', () => {
  test.each([
    [1, 1],
    [3, 1],
    [4, 2],
    [6, 3],
    [7, 3],
  ])('[SC-04] of version %i gets %i fields', (version, fields) => {
    expect(toLandlockPlan(version, []).handled).toHaveLength(fields);
  });

  test('[SC-04] is told only of rights that it knows', () => {
    for (const [version, most] of [
      [1, 2 ** 13],
      [2, 2 ** 14],
      [3, 2 ** 15],
      [5, 2 ** 16],
    ] as const) {
      const { handled, rules } = toLandlockPlan(version, [{ path: '/w', use: 'work' }]);
      expect(handled[0]).toBe(most - 1);
      expect(rules[0]?.rights).toBeLessThan(most);
    }
  });

  test('[MC-02] no device is made, and none but the harmless ones is used', () => {
    const [rule] = toLandlockPlan(7, [{ path: '/w', use: 'work' }]).rules;
    for (const bit of [6, 11, 15]) expect((rule?.rights ?? 0) & (1 << bit)).toBe(0);
  });
});
