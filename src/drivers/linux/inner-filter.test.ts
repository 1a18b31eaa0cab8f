import { describe, expect, test } from 'vitest';
import { judge } from './bpf.double.ts';
import { toInnerFilter, toOuterProfile } from './inner-filter.ts';
import { toSeccompProfile, type SeccompProfile } from './seccomp.ts';
import { syscallTable, type SyscallTable } from './syscall-numbers.ts';

const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const errno = (number: number): number => 0x00050000 + number;
const NEWUSER = 0x10000000;

function known<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('nothing is known of this architecture');
  return value;
}
const of = (architecture: string): [SeccompProfile, SyscallTable] => [
  known(toSeccompProfile(architecture)),
  known(syscallTable(architecture)),
];

describe.each(['x64', 'arm64'])('on %s', (architecture) => {
  const [profile, table] = of(architecture);
  const filter = toInnerFilter(profile, table);
  const ask = (name: string, ...words: number[]): number => {
    const number = known(table.numbers.get(name));
    return judge(filter, Uint32Array.of(number, table.audit, 0, 0, ...words.flatMap((word) => [word, 0])));
  };

  test('[SC-03] a run may call what any program of a cell may', () => {
    for (const name of ['read', 'execveat', 'futex', 'openat', 'exit_group', 'memfd_create'])
      expect([name, ask(name)]).toEqual([name, ALLOW]);
  });

  test('[SC-03] what makes walls is refused in a run, and not in the cell around it', () => {
    const outer = toOuterProfile(profile).syscalls;
    for (const name of ['mount', 'umount2', 'unshare', 'sethostname', 'setns']) {
      expect([name, ask(name, NEWUSER)]).toEqual([name, errno(1)]);
      expect(outer.filter(({ names }) => names.includes(name))).toHaveLength(1);
    }
  });

  test('[SC-03] no namespace, socket of another family or personality', () => {
    expect([ask('clone', 17), ask('clone', 17 | NEWUSER), ask('clone3')]).toEqual([
      ALLOW,
      errno(1),
      errno(38),
    ]);
    expect([1, 2, 10, 16, 17, 40].map((family) => ask('socket', family))).toEqual([
      ...[1, 2, 10, 16].map(() => ALLOW),
      errno(1),
      errno(1),
    ]);
    expect([0, 0xffffffff, 0x40000].map((persona) => ask('personality', persona))).toEqual([
      ALLOW,
      ALLOW,
      errno(1),
    ]);
  });

  test('[SC-03] another calling convention is the end', () => {
    expect(judge(filter, Uint32Array.of(0, 0x40000003, 0, 0))).toBe(KILL);
  });
});

test('[SC-03] the cell around the runs may do no more than that', () => {
  const [profile] = of('x64');
  const namesOf = ({ syscalls }: SeccompProfile): string[] => syscalls.flatMap(({ names }) => names);
  const more = namesOf(toOuterProfile(profile)).filter((name) => !namesOf(profile).includes(name));
  expect(more.toSorted()).toEqual(['mount', 'sethostname', 'setns', 'umount2', 'unshare']);
});

test('rules that a filter cannot say are refused instead of dropped', () => {
  const [profile, table] = of('x64');
  const more = (rule: SeccompProfile['syscalls'][number]): SeccompProfile => ({
    ...profile,
    syscalls: [rule],
  });
  expect(() => toInnerFilter(more({ names: ['read'], action: 'SCMP_ACT_TRACE' }), table)).toThrow(
    'SCMP_ACT_TRACE',
  );
  const args = [{ index: 0, value: 1, op: 'SCMP_CMP_LT' }];
  expect(() => toInnerFilter(more({ names: ['read'], action: 'SCMP_ACT_ALLOW', args }), table)).toThrow(
    'SCMP_CMP_LT',
  );
});
