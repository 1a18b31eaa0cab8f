import { describe, expect, test } from 'vitest';
import { unenforced } from '../../core/enforcement.ts';
import { PreloadDriver } from './driver.ts';
import { toEnforcement, toRuntime, type Layer } from './probe.ts';
import { syscallTable } from '../linux/syscall-numbers.ts';

function linux(landlock: number, changes: { seccomp?: boolean; isRoot?: boolean } = {}): Layer {
  const table = syscallTable('x64');
  if (table === undefined) throw new Error('x64 is listed');
  const { seccomp = true, isRoot = true } = changes;
  return { kind: 'linux', table, kernel: { landlock, seccomp, notify: seccomp }, isRoot };
}
const ONE_CORE = { cpus: 1 };

describe('who keeps which promise', () => {
  test('[SC-04] with everything the kernel has, all of them are kept', () => {
    for (const version of [1, 3, 4, 6, 7])
      expect(unenforced(toEnforcement(linux(version), ONE_CORE))).toEqual([]);
  });

  test('[SC-04] without root the identity is not, and before Landlock 6 neither is the view of processes', () => {
    expect(unenforced(toEnforcement(linux(7, { isRoot: false }), ONE_CORE))).toEqual(['identity']);
    expect(unenforced(toEnforcement(linux(5, { isRoot: false }), ONE_CORE))).toEqual([
      'identity',
      'processView',
    ]);
  });

  test('[SC-04] a share of a core is not kept, whole cores are', () => {
    expect(toEnforcement(linux(7), { cpus: 0.5 }).cpus).toBe('nobody');
    expect(toEnforcement(linux(7), { cpus: 1.5 }).cpus).toBe('nobody');
    expect(toEnforcement(linux(7), { cpus: 2 }).cpus).toBe('kernel');
  });

  test.each([
    ['no Landlock', linux(0), 'filesystem'],
    ['no seccomp', linux(7, { seccomp: false }), 'network'],
    ['an unknown system', { kind: 'none' } as const, 'filesystem'],
  ] as const)('[SC-04] with %s it is said that this is no isolation', (_what, layer, promise) => {
    const enforcement = toEnforcement(layer, ONE_CORE);
    expect(unenforced(enforcement)).toContain(promise);
    expect(toRuntime(layer, enforcement)).toBe('preload only — not isolation');
  });
});

test('[SC-04] without Bun there is no launcher, and doctor says so', async () => {
  const driver = new PreloadDriver({ stateDirectory: undefined, guest: '/none', tools: [], weaker: [] });
  expect(await driver.probe()).toMatchObject({
    ok: false,
    problem: expect.stringContaining('Bun') as unknown,
  });
});

test('[SC-04] a launcher that does not start is a problem, not a weaker cell', async () => {
  const tools = [{ name: 'bun', path: '/bin/false' }];
  const driver = new PreloadDriver({
    stateDirectory: undefined,
    guest: '/none',
    tools,
    weaker: ['filesystem'],
  });
  expect(await driver.probe()).toMatchObject({
    ok: false,
    problem: expect.stringContaining('launcher') as unknown,
  });
});
