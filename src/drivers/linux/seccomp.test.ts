import { describe, expect, test } from 'vitest';
import { toSeccompProfile, type SeccompRule } from './seccomp.ts';

const profile = toSeccompProfile('x64');
const rules: readonly SeccompRule[] = profile?.syscalls ?? [];
const rulesFor = (name: string): SeccompRule[] => rules.filter((rule) => rule.names.includes(name));

const FORBIDDEN = `
  add_key keyctl request_key
  mount umount2 mount_setattr move_mount open_tree fsopen fsconfig fsmount fspick pivot_root chroot
  unshare setns bpf perf_event_open userfaultfd open_by_handle_at name_to_handle_at fanotify_init
  kexec_load kexec_file_load init_module finit_module delete_module
  ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd
  reboot swapon swapoff syslog acct quotactl sethostname setdomainname iopl ioperm
  settimeofday clock_settime clock_adjtime adjtimex lookup_dcookie vhangup nfsservctl uselib
  modify_ldt move_pages mbind set_mempolicy migrate_pages
`
  .split(/\s+/)
  .filter((name) => name !== '');

describe('the filter', () => {
  test('[SC-03] what is not named fails', () => {
    expect(profile).toMatchObject({ defaultAction: 'SCMP_ACT_ERRNO', defaultErrnoRet: 1 });
  });

  test.each(FORBIDDEN)('[SC-03] %s is not named', (name) => {
    expect(rulesFor(name)).toEqual([]);
  });

  test.each(['io_uring_setup', 'io_uring_enter', 'io_uring_register', 'clone3', 'memfd_secret'])(
    '[SC-03] %s is answered as if the kernel had no such call',
    (name) => {
      expect(rulesFor(name).map(({ action, errnoRet }) => ({ action, errnoRet }))).toEqual([
        { action: 'SCMP_ACT_ERRNO', errnoRet: 38 },
      ]);
    },
  );

  test.each(['clone', 'socket', 'personality'])('[SC-03] %s is allowed only for some arguments', (name) => {
    expect(rulesFor(name)).not.toEqual([]);
    expect(rulesFor(name).filter((rule) => (rule.args ?? []).length === 0)).toEqual([]);
  });

  test('[SC-03] no call is named by two rules of different kinds', () => {
    const plain = rules.filter((rule) => rule.args === undefined).flatMap((rule) => rule.names);
    expect(plain).toHaveLength(new Set(plain).size);
  });

  test.each(['read', 'execve', 'fork', 'futex', 'openat', 'epoll_wait', 'exit_group'])(
    'interpreters need %s',
    (name) => {
      expect(rulesFor(name)).toMatchObject([{ action: 'SCMP_ACT_ALLOW' }]);
    },
  );
});

/** From linux/sched.h. */
const CLONE_FLAGS = {
  CLONE_NEWTIME: 0x80,
  CLONE_NEWNS: 0x20000,
  CLONE_NEWCGROUP: 0x2000000,
  CLONE_NEWUTS: 0x4000000,
  CLONE_NEWIPC: 0x8000000,
  CLONE_NEWUSER: 0x10000000,
  CLONE_NEWPID: 0x20000000,
  CLONE_NEWNET: 0x40000000,
};

describe('clone', () => {
  const [condition] = rulesFor('clone')[0]?.args ?? [];

  test('[SC-03] is allowed when none of the masked flags is set', () => {
    expect(condition).toMatchObject({ index: 0, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' });
  });

  test.each(Object.entries(CLONE_FLAGS))('[SC-03] %s is masked', (_name, flag) => {
    expect((condition?.value ?? 0) & flag).toBe(flag);
  });

  test('threads and processes have other flags', () => {
    const thread =
      0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000 | 0x80000 | 0x100000 | 0x200000 | 0x1000000;
    const SIGCHLD = 17;
    expect((condition?.value ?? 0) & (thread | SIGCHLD)).toBe(0);
  });
});

describe('sockets', () => {
  const families = rulesFor('socket').map((rule) => rule.args);

  test('[SC-03] only local, IPv4, IPv6 and netlink ones can be made', () => {
    expect(families).toEqual([1, 2, 10, 16].map((value) => [{ index: 0, value, op: 'SCMP_CMP_EQ' }]));
  });
});

describe('architectures', () => {
  test.each([
    ['x64', ['SCMP_ARCH_X86_64']],
    ['arm64', ['SCMP_ARCH_AARCH64']],
  ])('[SC-03] %s allows only its native calls, so neither 32-bit nor x32 ones', (architecture, expected) => {
    expect(toSeccompProfile(architecture)?.architectures).toEqual(expected);
  });

  test.each(['ia32', 'riscv64', ''])('[SC-04] %j has no filter rather than a wrong one', (name) => {
    expect(toSeccompProfile(name)).toBeUndefined();
  });
});
