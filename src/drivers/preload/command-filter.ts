import { ALLOWED_CALLS, MISSING_CALLS, NAMESPACE_FLAGS } from '../linux/seccomp.ts';
import { assembleFilter, type ArgumentTest, type CallRule, type Verdict } from '../linux/bpf.ts';
import type { SyscallTable } from '../linux/syscall-numbers.ts';

const ALLOW: Verdict = { kind: 'allow' };
const errno = (number: number): Verdict => ({ kind: 'errno', errno: number });
const EPERM = errno(1);
const EACCES = errno(13);
const ENOSYS = errno(38);
/** For what is harmless to leave undone, and would end programs that insist on it. */
const DONE = errno(0);

const AF_UNIX = 1;
const AF_INET = 2;
const STREAM: ArgumentTest = { index: 1, mask: 0xf, is: [1] };
const IPPROTO_TCP = 6;
const CLONE_THREAD = 0x10000;
const O_TRUNC = 0o1000;
const O_ACCMODE = 3;
const MSG_FASTOPEN = 0x20000000;
const PR_SET_PDEATHSIG = 1;
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;

/** Never in a process that shares the host's network, IPC and file systems: each of them reaches past Landlock. */
const SHARED_WITH_HOST = [
  'bind',
  'listen',
  'accept',
  'accept4',
  'inotify_add_watch',
  'inotify_init',
  'inotify_init1',
  // Memory that no process is charged for, and that outlives them.
  'memfd_create',
  'mq_open',
  'mq_unlink',
  'msgget',
  'msgctl',
  'semget',
  'semctl',
  'shmget',
  'shmat',
  'shmctl',
  // What the launcher set holds; the others also reach processes of the same user outside.
  'sched_setaffinity',
  'sched_setattr',
  'sched_setparam',
  'sched_setscheduler',
  'setpriority',
  'ioprio_set',
];

/** What the owner of a file may do to it wherever it is; Landlock does not know of it. */
const OWNERS_CHANGES = [
  'chmod',
  'fchmod',
  'fchmodat',
  'fchmodat2',
  'chown',
  'fchown',
  'lchown',
  'fchownat',
  'setxattr',
  'lsetxattr',
  'fsetxattr',
  'setxattrat',
  'removexattr',
  'lremovexattr',
  'fremovexattr',
  'removexattrat',
];
const OWNERS_TIMES = ['utime', 'utimes', 'utimensat', 'futimesat'];

export interface FilterNeeds {
  /** May it have more processes than the one it is? */
  readonly forks: boolean;
  /** May it ask for TCP connections? Somebody else makes them. */
  readonly connects: boolean;
  /** It runs as somebody who owns nothing but its workdir. */
  readonly ownIdentity: boolean;
  /** Landlock knows when a file is cut. */
  readonly truncation: boolean;
}

/**
 * The filter of one command: the allow-list of cells, less what is shared with the host here.
 * SECURITY: processes cannot leave their group, so that one signal reaches all of them.
 */
export function toCommandFilter(table: SyscallTable, needs: FilterNeeds): Uint8Array {
  const answers = new Map<string, Verdict>([
    ...MISSING_CALLS.map((name) => [name, ENOSYS] as const),
    ...SHARED_WITH_HOST.map((name) => [name, EACCES] as const),
    ['setsid', DONE],
    ['setpgid', DONE],
    ...(needs.forks ? [] : (['fork', 'vfork'] as const).map((name) => [name, EPERM] as const)),
    ...(needs.ownIdentity ? [] : OWNERS_CHANGES.map((name) => [name, EPERM] as const)),
    ...(needs.ownIdentity ? [] : OWNERS_TIMES.map((name) => [name, DONE] as const)),
    ...(needs.truncation ? [] : [['truncate', EPERM] as const, ['openat2', ENOSYS] as const]),
  ]);
  const tested = toTestedCalls(needs);
  const names = new Set([...answers.keys(), ...tested.map(({ name }) => name)]);
  const numberOf = (name: string): number[] => {
    const number = table.numbers.get(name);
    return number === undefined ? [] : [number];
  };
  return assembleFilter({
    audit: table.audit,
    foreignBit: table.foreignBit,
    rules: [
      ...tested.flatMap(({ name, ...rule }) => numberOf(name).map((number) => ({ number, ...rule }))),
      ...[...answers].flatMap(([name, verdict]) =>
        numberOf(name).map((number): CallRule => ({ number, tests: [], verdict, otherwise: verdict })),
      ),
    ],
    allowed: ALLOWED_CALLS.filter((name) => !names.has(name)).flatMap(numberOf),
    otherwise: EPERM,
  });
}

interface TestedCall extends Omit<CallRule, 'number'> {
  readonly name: string;
}

function toTestedCalls(needs: FilterNeeds): TestedCall[] {
  const plain = (name: string, test: ArgumentTest, otherwise: Verdict = EPERM): TestedCall => ({
    name,
    tests: [test],
    verdict: ALLOW,
    otherwise,
  });
  const notFast = (name: string, index: number): TestedCall =>
    // SECURITY: it would connect without connect().
    plain(name, { index, mask: MSG_FASTOPEN, is: [0] }, EACCES);
  const cuts = { mask: O_TRUNC + O_ACCMODE, not: [O_TRUNC] };
  return [
    {
      name: 'clone',
      tests: [
        { index: 0, mask: NAMESPACE_FLAGS, is: [0] },
        ...(needs.forks ? [] : [{ index: 0, mask: CLONE_THREAD, is: [CLONE_THREAD] }]),
      ],
      verdict: ALLOW,
      otherwise: EPERM,
    },
    {
      name: 'socket',
      // SECURITY: other protocols, such as MPTCP, would connect where nobody looks.
      tests: [{ index: 0, is: [AF_INET] }, STREAM, { index: 2, is: [0, IPPROTO_TCP] }],
      verdict: needs.connects ? ALLOW : EACCES,
      otherwise: EACCES,
    },
    { name: 'connect', tests: [], verdict: needs.connects ? { kind: 'ask' } : EACCES, otherwise: EACCES },
    // SECURITY: one end of a pair of datagrams can still be sent from to any path.
    { name: 'socketpair', tests: [{ index: 0, is: [AF_UNIX] }, STREAM], verdict: ALLOW, otherwise: EACCES },
    notFast('sendto', 3),
    notFast('sendmsg', 2),
    notFast('sendmmsg', 3),
    plain('prctl', { index: 0, not: [PR_SET_PDEATHSIG] }),
    // Limits of its own only.
    plain('prlimit64', { index: 0, is: [0] }),
    plain('ioctl', { index: 1, not: [TIOCSTI, TIOCLINUX] }),
    plain('personality', { index: 0, is: [0, 0xffffffff] }),
    ...(needs.truncation
      ? []
      : [plain('open', { index: 1, ...cuts }), plain('openat', { index: 2, ...cuts })]),
  ];
}
