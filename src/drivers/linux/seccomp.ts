/**
 * Deny by default: a system call that is not named here fails. The list is made for interpreters, compilers and
 * shells that run without privileges; whatever would need a capability is left out, since cells have none.
 */
const ALLOWED = `
  accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_getres
  clock_gettime clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create
  epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 execve
  execveat exit exit_group faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat
  fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex
  futex_requeue futex_wait futex_waitv futex_wake futimesat get_mempolicy get_robust_list get_thread_area getcpu
  getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid
  getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday
  getuid getxattr getxattrat inotify_add_watch inotify_init inotify_init1 inotify_rm_watch ioctl ioprio_get
  ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat
  listen listxattr listxattrat llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack membarrier
  memfd_create mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mprotect mq_getsetattr mq_notify
  mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall
  munmap nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free
  pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64 pselect6 pwrite64 pwritev pwritev2 read readahead
  readlink readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr removexattrat rename renameat
  renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn
  rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity
  sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr
  sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg
  sendmsg sendto set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid
  setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr setxattrat shmat
  shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 socketpair splice stat statfs statx symlink symlinkat
  sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime
  timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink unlinkat utime
  utimensat utimes vfork vmsplice wait4 waitid write writev
`;

/** Probed for by libraries that fall back to something else, but only when told that the call does not exist. */
const ANSWERED_AS_MISSING = 'clone3 io_uring_enter io_uring_register io_uring_setup memfd_secret';

/** Address families a program may open: local, IPv4, IPv6 and netlink (getifaddrs). Never vsock, alg or packet. */
const SOCKET_FAMILIES = [1, 2, 10, 16];

/** clone() flags that make namespaces: NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
export const NAMESPACE_FLAGS = 0x7e020080;

const EPERM = 1;
const ENOSYS = 38;
const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');

/** Names that a filter may let pass whatever their arguments are. */
export const ALLOWED_CALLS: readonly string[] = words(ALLOWED);
/** Names that a filter answers as if the kernel did not have them. */
export const MISSING_CALLS: readonly string[] = words(ANSWERED_AS_MISSING);

const ARCHITECTURES: Readonly<Record<string, string>> = {
  x64: 'SCMP_ARCH_X86_64',
  arm64: 'SCMP_ARCH_AARCH64',
};

export interface SeccompRule {
  readonly names: readonly string[];
  readonly action: string;
  readonly errnoRet?: number;
  readonly args?: readonly { index: number; value: number; valueTwo?: number; op: string }[];
}

export interface SeccompProfile {
  readonly defaultAction: string;
  readonly defaultErrnoRet: number;
  readonly architectures: readonly string[];
  readonly syscalls: readonly SeccompRule[];
}

/**
 * The filter for the `linux.seccomp` part of an OCI config; undefined for an architecture without one.
 * SECURITY: only the native architecture is listed, so that 32-bit and x32 calls cannot slip past the names.
 */
export function toSeccompProfile(architecture: string): SeccompProfile | undefined {
  const native = Object.hasOwn(ARCHITECTURES, architecture) ? ARCHITECTURES[architecture] : undefined;
  if (native === undefined) return undefined;
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: EPERM,
    architectures: [native],
    syscalls: [
      { names: ALLOWED_CALLS, action: 'SCMP_ACT_ALLOW' },
      { names: MISSING_CALLS, action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
      {
        names: ['clone'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value: NAMESPACE_FLAGS, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
      },
      ...SOCKET_FAMILIES.map((family) => ({
        names: ['socket'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value: family, op: 'SCMP_CMP_EQ' }],
      })),
      // The personalities that only say "plain Linux"; others switch off address randomisation.
      ...[0, 0xffffffff].map((persona) => ({
        names: ['personality'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value: persona, op: 'SCMP_CMP_EQ' }],
      })),
    ],
  };
}
