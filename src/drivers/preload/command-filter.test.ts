import { describe, expect, test } from 'vitest';
import { toCommandFilter, type FilterNeeds } from './command-filter.ts';
import { judge } from '../linux/bpf.double.ts';
import { syscallTable, type SyscallTable } from '../linux/syscall-numbers.ts';

const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const ASK = 0x7fc00000;
const errno = (number: number): number => 0x00050000 + number;
const [EPERM, EACCES, ENOSYS, DONE] = [errno(1), errno(13), errno(38), errno(0)];

const LEAST: FilterNeeds = { forks: false, connects: false, ownIdentity: false, truncation: false };
const MOST: FilterNeeds = { forks: true, connects: true, ownIdentity: true, truncation: true };

function tableOf(architecture: string): SyscallTable {
  const table = syscallTable(architecture);
  if (table === undefined) throw new Error(`no table for ${architecture}`);
  return table;
}

function dataOf(audit: number, number: number, args: readonly number[]): Uint32Array {
  const data = new Uint32Array(16);
  data[0] = number;
  data[1] = audit;
  for (const [index, arg] of args.entries()) data[4 + index * 2] = arg;
  return data;
}

describe.each(['x64', 'arm64'])('the filter on %s', (architecture) => {
  const table = tableOf(architecture);
  const verdict = (needs: FilterNeeds, name: string, ...args: number[]): number => {
    const number = table.numbers.get(name);
    if (number === undefined) throw new Error(`${name} is not listed`);
    return judge(toCommandFilter(table, needs), dataOf(table.audit, number, args));
  };

  test.each(['read', 'write', 'openat', 'mmap', 'futex', 'execve', 'exit_group', 'epoll_pwait', 'getrandom'])(
    '[MC-02] lets %s pass',
    (name) => {
      expect(verdict(LEAST, name, 0, 0, 0)).toBe(ALLOW);
    },
  );

  test('[MC-02] refuses every number that nobody has listed', () => {
    const program = toCommandFilter(table, MOST);
    const listed = new Set(table.numbers.values());
    for (let number = 0; number < 1024; number++) {
      if (listed.has(number)) continue;
      expect([number, judge(program, dataOf(table.audit, number, []))]).toEqual([number, EPERM]);
    }
  });

  test('[MC-02] kills in another calling convention', () => {
    const program = toCommandFilter(table, MOST);
    const foreign = tableOf(architecture === 'x64' ? 'arm64' : 'x64');
    for (const audit of [foreign.audit, 0x40000003, 0x40000028, 0])
      expect(judge(program, dataOf(audit, 0, []))).toBe(KILL);
  });

  test('[MC-02] no socket, unless it may ask for connections, and then TCP only', () => {
    expect(verdict(LEAST, 'socket', 2, 1, 0)).toBe(EACCES);
    expect(verdict(LEAST, 'connect')).toBe(EACCES);
    expect(verdict(MOST, 'socket', 2, 1, 6)).toBe(ALLOW);
    expect(verdict(MOST, 'socket', 2, 1 + 0o2000000 + 0o4000, 0)).toBe(ALLOW);
    expect(verdict(MOST, 'connect')).toBe(ASK);
    for (const [family, type, protocol] of [
      [1, 1, 0],
      [1, 2, 0],
      [10, 1, 0],
      [16, 3, 0],
      [17, 3, 0],
      [2, 2, 0],
      [2, 3, 1],
      [2, 1, 262],
      [2, 1, 256],
      [2, 1, 132],
    ] as const)
      expect([family, type, protocol, verdict(MOST, 'socket', family, type, protocol)]).toEqual([
        family,
        type,
        protocol,
        EACCES,
      ]);
    for (const name of ['bind', 'listen', 'accept4']) expect(verdict(MOST, name)).toBe(EACCES);
    expect(verdict(MOST, 'socketpair', 1, 1)).toBe(ALLOW);
    expect(verdict(MOST, 'socketpair', 1, 2)).toBe(EACCES);
    expect(verdict(MOST, 'socketpair', 1, 5)).toBe(EACCES);
  });

  test('[MC-02] nothing is sent that connects by itself', () => {
    expect(verdict(MOST, 'sendto', 3, 0, 0, 0x4000)).toBe(ALLOW);
    expect(verdict(MOST, 'sendto', 3, 0, 0, 0x20004000)).toBe(EACCES);
    expect(verdict(MOST, 'sendmsg', 3, 0, 0x20000000)).toBe(EACCES);
    expect(verdict(MOST, 'sendmmsg', 3, 0, 1, 0x20000000)).toBe(EACCES);
  });

  test('[MC-02] threads always, processes by leave, namespaces never', () => {
    const [THREAD, NEWUSER] = [0x3d0f00, 0x10000000];
    expect(verdict(LEAST, 'clone', THREAD)).toBe(ALLOW);
    expect(verdict(LEAST, 'clone', 17)).toBe(EPERM);
    expect(verdict(MOST, 'clone', 17)).toBe(ALLOW);
    expect(verdict(MOST, 'clone', 17 + NEWUSER)).toBe(EPERM);
    expect(verdict(MOST, 'clone3')).toBe(ENOSYS);
  });

  test('[MC-06] nobody leaves the group, the cores or the fate of the server', () => {
    expect([verdict(MOST, 'setsid'), verdict(MOST, 'setpgid')]).toEqual([DONE, DONE]);
    expect(verdict(MOST, 'sched_setaffinity')).toBe(EACCES);
    expect(verdict(MOST, 'prctl', 1, 0)).toBe(EPERM);
    expect(verdict(MOST, 'prctl', 15)).toBe(ALLOW);
    expect(verdict(MOST, 'prlimit64', 0)).toBe(ALLOW);
    expect(verdict(MOST, 'prlimit64', 1)).toBe(EPERM);
  });

  test('[MC-02] an identity of its own may change what it owns, another one may not', () => {
    for (const name of ['fchmod', 'fchmodat', 'fchownat', 'setxattr', 'removexattr']) {
      expect(verdict(MOST, name)).toBe(ALLOW);
      expect(verdict(LEAST, name)).toBe(EPERM);
    }
    expect(verdict(LEAST, 'utimensat')).toBe(DONE);
  });

  test('[MC-02] files are not cut by opening them for reading where Landlock would not notice', () => {
    const [O_TRUNC, O_RDONLY, O_WRONLY] = [0o1000, 0, 1];
    expect(verdict(LEAST, 'openat', 0, 0, O_RDONLY + O_TRUNC)).toBe(EPERM);
    expect(verdict(LEAST, 'openat', 0, 0, O_WRONLY + O_TRUNC)).toBe(ALLOW);
    expect(verdict(LEAST, 'truncate')).toBe(EPERM);
    expect(verdict(LEAST, 'openat2')).toBe(ENOSYS);
    expect(verdict(MOST, 'openat', 0, 0, O_RDONLY + O_TRUNC)).toBe(ALLOW);
    expect(verdict(MOST, 'truncate')).toBe(ALLOW);
  });

  test.each(['memfd_create', 'shmget', 'msgget', 'semget', 'mq_open', 'inotify_add_watch', 'setpriority'])(
    '[MC-02] %s is shared with the host, and refused',
    (name) => {
      expect(verdict(MOST, name)).toBe(EACCES);
    },
  );

  test('[MC-02] no terminal of somebody else is typed into', () => {
    expect(verdict(MOST, 'ioctl', 0, 0x5412)).toBe(EPERM);
    expect(verdict(MOST, 'ioctl', 0, 0x541c)).toBe(EPERM);
    expect(verdict(MOST, 'ioctl', 0, 0x5401)).toBe(ALLOW);
  });
});

test('[SC-04] an architecture that nobody has listed has no filter', () => {
  expect(syscallTable('riscv64')).toBeUndefined();
  expect(syscallTable('__proto__')).toBeUndefined();
});

describe('on x64 there are more ways', () => {
  const table = tableOf('x64');
  const verdict = (needs: FilterNeeds, number: number): number =>
    judge(toCommandFilter(table, needs), dataOf(table.audit, number, []));

  test('[MC-02] x32 kills', () => {
    expect(verdict(MOST, 0x40000000 + 39)).toBe(KILL);
  });

  test('[MC-02] fork and vfork are by leave', () => {
    expect([57, 58].map((number) => verdict(LEAST, number))).toEqual([EPERM, EPERM]);
    expect([57, 58].map((number) => verdict(MOST, number))).toEqual([ALLOW, ALLOW]);
  });
});
