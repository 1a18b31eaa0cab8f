import { describe, expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../core/limits.ts';
import { encodeWalls, planWalls, type WallStep } from './inner-walls.ts';
import { toSeccompProfile } from './seccomp.ts';
import { syscallTable } from './syscall-numbers.ts';

const [profile, table] = [toSeccompProfile('x64'), syscallTable('x64')];
if (profile === undefined || table === undefined) throw new Error('nothing is known of x64');
const paths = { masked: ['/proc/kcore', '/proc/scsi'], readOnly: ['/proc/sys'] };
const plan = planWalls({ limits: DEFAULT_LIMITS, paths, folders: new Set(['/proc/scsi']), profile, table });

const nameOf = (step: WallStep): string => ('write' in step ? step.write : step.label);
const placesOf = (steps: readonly WallStep[], ...names: string[]): number[] =>
  names.map((name) => steps.findIndex((step) => nameOf(step) === name));
const isSorted = (places: readonly number[]): boolean =>
  places.every((place, index) => place >= 0 && place > (places[index - 1] ?? -1));

describe('the order', () => {
  test('[SC-03] mounts come first, identities after them, the filter last', () => {
    expect(
      isSorted(placesOf(plan.first, 'dumpable', 'workdir', 'proc', 'mask /proc/kcore', 'protect /proc/sys')),
    ).toBe(true);
    const program = [
      'setgroups',
      'gid',
      'uid',
      'user namespace',
      '/proc/self/setgroups',
      '/proc/self/gid_map',
      '/proc/self/uid_map',
      'capabilities',
      'no new privileges',
      'filter',
    ];
    expect(isSorted(placesOf(plan.program, ...program))).toBe(true);
    expect(nameOf(plan.program.at(-1) ?? { write: '', text: '' })).toBe('filter');
  });

  test('[SC-03] every capability is taken out of the bounding set, and PID 1 keeps none', () => {
    expect(plan.program.filter((step) => nameOf(step) === 'bounding set')).toHaveLength(41);
    expect(plan.keeper.map(nameOf)).toEqual(['capabilities']);
  });

  test('[SC-03] seven namespaces of its own; the user namespace comes with the program', () => {
    expect(plan.flags).toBe(0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x20000000 | 0x40000000);
  });
});

describe('as text', () => {
  const words = encodeWalls(plan, table).split('\0');

  test('has the number of clone, its flags, the workdir, and three lists with their lengths', () => {
    expect(words.slice(0, 4)).toEqual(['56', String(plan.flags), '/tmp', String(plan.first.length)]);
    let at = 3;
    for (const steps of [plan.first, plan.program, plan.keeper]) {
      expect(words[at++]).toBe(String(steps.length));
      for (const _ of steps) at += 3 + Number(words[at + 2]);
    }
    expect(at).toBe(words.length);
  });

  test('[SC-03] the bound of the workdir and the id of the run are in it', () => {
    expect(words).toContain(`tsize=${DEFAULT_LIMITS.diskBytes},nr_inodes=16384,mode=1777`);
    expect(words).toContain('t1000 {id} 1');
  });

  test('a call without a number on this machine is refused', () => {
    const poor = { ...table, numbers: new Map([...table.numbers].filter(([name]) => name !== 'mount')) };
    expect(() => encodeWalls(plan, poor)).toThrow('no number is known for mount');
  });
});
