import type { Limits } from '../../core/limits.ts';
import { CELL_UID, WORKDIR_IN_CELL } from './cell-paths.ts';
import { toInnerFilter } from './inner-filter.ts';
import type { MaskablePaths } from './masked-paths.ts';
import type { SeccompProfile } from './seccomp.ts';
import type { SyscallTable } from './syscall-numbers.ts';

/**
 * A word of a step: a number, text (with `{id}` and `{host}` of the run), bytes, a filter, or a fact: `id` and `hostlen` of the
 * run, or what the step with this label returned.
 */
type Word =
  | number
  | string
  | { readonly bytes: Uint8Array }
  | { readonly filter: Uint8Array }
  | { readonly fact: string };

/** One step: a call of the kernel with its arguments, or a text to be written into a file. */
export type WallStep =
  | { readonly call: string; readonly label: string; readonly words: readonly Word[] }
  | { readonly write: string; readonly text: string };

/** The walls of a run as data, so that whatever forks the run (Perl, an interpreter) lays the same ones. */
export interface WallPlan {
  /** Of clone(2). */
  readonly flags: number;
  readonly workdir: string;
  /** By PID 1 of the run, before it starts the program. */
  readonly first: readonly WallStep[];
  /** By the program itself, before it is one. */
  readonly program: readonly WallStep[];
  /** By PID 1 while the program runs. */
  readonly keeper: readonly WallStep[];
}

const CLONE = { newns: 0x20000, newcgroup: 0x2000000, newuts: 0x4000000, newipc: 0x8000000 };
const CLONE_NEWUSER = 0x10000000;
const CLONE_NEWPID = 0x20000000;
const CLONE_NEWNET = 0x40000000;
const MS = { readOnly: 1, noSuid: 2, noDev: 4, noExec: 8, remount: 32, bind: 4096 };
const PR = { pdeathsig: 1, dumpable: 4, seccomp: 22, capBsetDrop: 24, noNewPrivs: 38 };
const SECCOMP_MODE_FILTER = 2;
const SIGKILL = 9;
const SIG_SETMASK = 2;
const RLIMIT_NOFILE = 7;
const AF_INET = 2;
const SOCK_DGRAM = 2;
const SIOCSIFFLAGS = 0x8914;
const IFF_UP_AND_RUNNING = 0x41;
const LAST_CAPABILITY = 40;
/** When memory runs out the program goes first, PID 1 of the run next, and who makes the runs last. */
const FIRST_TO_GO = '500';
const NEXT_TO_GO = '250';
const EMPTY_FOLDER = '/dev/pts';
/** `struct __user_cap_header_struct` of version 3, and no capability at all. */
const CAP_HEADER = Uint8Array.of(0x22, 0x05, 0x08, 0x20, 0, 0, 0, 0);
const NO_CAPABILITIES = new Uint8Array(24);
const ALL_SIGNALS = new Uint8Array(8).fill(0xff);
const NO_SIGNALS = new Uint8Array(8);

export interface WallNeeds {
  readonly limits: Limits;
  readonly paths: MaskablePaths;
  /** Of the masked ones, those that are folders. */
  readonly folders: ReadonlySet<string>;
  readonly profile: SeccompProfile;
  readonly table: SyscallTable;
}

/**
 * The order of the steps is the wall. Mounts are made by root of the outer cell, and only then does the program get a user
 * namespace of its own, which so owns none of the others. Nothing of a job is read before the last step.
 */
export function planWalls(needs: WallNeeds): WallPlan {
  const { limits, profile, table } = needs;
  const { newns, newcgroup, newuts, newipc } = CLONE;
  return {
    flags: newns | newcgroup | newuts | newipc | CLONE_NEWPID | CLONE_NEWNET,
    workdir: WORKDIR_IN_CELL,
    first: [
      prctl('death with the slot', PR.pdeathsig, SIGKILL),
      // SECURITY: nobody inside may open the memory or the descriptors of PID 1, nor interrupt it.
      prctl('dumpable', PR.dumpable, 0),
      step('rt_sigprocmask', 'signals', SIG_SETMASK, { bytes: ALL_SIGNALS }, 0, 8),
      step('setsid', 'setsid'),
      ...toMounts(needs),
      { write: '/proc/self/oom_score_adj', text: NEXT_TO_GO },
      step('sethostname', 'hostname', '{host}', { fact: 'hostlen' }),
      ...toLoopback(),
    ],
    program: [
      step('rt_sigprocmask', 'signals', SIG_SETMASK, { bytes: NO_SIGNALS }, 0, 8),
      step('setrlimit', 'open files', RLIMIT_NOFILE, { bytes: toRlimit(limits.openFiles) }),
      // Groups before the user: afterwards nobody may.
      step('setgroups', 'setgroups', 0, 0),
      step('setresgid', 'gid', { fact: 'id' }, { fact: 'id' }, { fact: 'id' }),
      step('setresuid', 'uid', { fact: 'id' }, { fact: 'id' }, { fact: 'id' }),
      // Else its own /proc/self belongs to root, and it could not map itself. Nobody else is in here yet.
      prctl('dumpable', PR.dumpable, 1),
      { write: '/proc/self/oom_score_adj', text: FIRST_TO_GO },
      step('unshare', 'user namespace', CLONE_NEWUSER),
      { write: '/proc/self/setgroups', text: 'deny' },
      { write: '/proc/self/gid_map', text: `${CELL_UID} {id} 1` },
      { write: '/proc/self/uid_map', text: `${CELL_UID} {id} 1` },
      ...toCapabilities(LAST_CAPABILITY).map((capability) =>
        prctl('bounding set', PR.capBsetDrop, capability),
      ),
      step('capset', 'capabilities', { bytes: CAP_HEADER }, { bytes: NO_CAPABILITIES }),
      prctl('no new privileges', PR.noNewPrivs, 1),
      // SECURITY: last, since it would refuse some of the steps before it.
      step(
        'prctl',
        'filter',
        PR.seccomp,
        SECCOMP_MODE_FILTER,
        { filter: toInnerFilter(profile, table) },
        0,
        0,
      ),
    ],
    keeper: [step('capset', 'capabilities', { bytes: CAP_HEADER }, { bytes: NO_CAPABILITIES })],
  };
}

function step(call: string, label: string, ...words: Word[]): WallStep {
  return { call, label, words };
}

function prctl(label: string, option: number, value: number): WallStep {
  return step('prctl', label, option, value, 0, 0, 0);
}

const toCapabilities = (last: number): number[] => Array.from({ length: last + 1 }, (_, index) => index);

/** Everything that can be written in the outer cell is covered: what one run leaves there another could read. */
function toMounts({ limits, paths, folders }: WallNeeds): WallStep[] {
  const { readOnly, noSuid, noDev, noExec, remount, bind } = MS;
  const inodes = Math.max(1024, Math.floor(limits.diskBytes / 4096));
  const options = `size=${limits.diskBytes},nr_inodes=${inodes},mode=1777`;
  const bindOn = (label: string, source: string, target: string): WallStep =>
    step('mount', label, source, target, '', bind, '');
  return [
    step('mount', 'workdir', 'tmpfs', WORKDIR_IN_CELL, 'tmpfs', noSuid | noDev, options),
    step('mount', 'proc', 'proc', '/proc', 'proc', noSuid | noDev | noExec, ''),
    ...paths.masked.map((path) =>
      bindOn(`mask ${path}`, folders.has(path) ? EMPTY_FOLDER : '/dev/null', path),
    ),
    ...paths.readOnly.flatMap((path) => [
      bindOn(`bind ${path}`, path, path),
      step('mount', `protect ${path}`, '', path, '', bind | remount | readOnly | noSuid | noDev | noExec, ''),
    ]),
  ];
}

/** `ifreq` for SIOCSIFFLAGS: the name in 16 bytes, the flags, and room for the rest of the union. */
function toLoopback(): WallStep[] {
  const request = new Uint8Array(40);
  request.set(Buffer.from('lo'));
  request[16] = IFF_UP_AND_RUNNING;
  return [
    step('socket', 'socket', AF_INET, SOCK_DGRAM, 0),
    step('ioctl', 'loopback', { fact: 'socket' }, SIOCSIFFLAGS, { bytes: request }),
    step('close', 'close', { fact: 'socket' }),
  ];
}

function toRlimit(value: number): Uint8Array {
  const limit = new DataView(new ArrayBuffer(16));
  for (const offset of [0, 8]) limit.setBigUint64(offset, BigInt(value), true);
  return new Uint8Array(limit.buffer);
}

/** As `guest/lib/Nest/Walls.pm` and its like read it. NUL parts the words, so no word may contain one. */
export function encodeWalls(plan: WallPlan, table: SyscallTable): string {
  const numberOf = (call: string): number => {
    const number = table.numbers.get(call);
    if (number === undefined) throw new RangeError(`no number is known for ${call}`);
    return number;
  };
  const toWords = (one: WallStep): string[] =>
    'write' in one
      ? ['write', one.write, '2', `t${one.write}`, `t${one.text}`]
      : [
          'call',
          one.label,
          String(one.words.length + 1),
          `n${numberOf(one.call)}`,
          ...one.words.map(encodeWord),
        ];
  const parts = [plan.first, plan.program, plan.keeper];
  return [
    String(numberOf('clone')),
    String(plan.flags),
    plan.workdir,
    ...parts.flatMap((steps) => [String(steps.length), ...steps.flatMap(toWords)]),
  ].join('\0');
}

function encodeWord(word: Word): string {
  if (typeof word === 'number') return `n${word}`;
  if (typeof word === 'string') return `t${word}`;
  if ('fact' in word) return `r${word.fact}`;
  if ('filter' in word) return `f${Buffer.from(word.filter).toString('hex')}`;
  return `h${Buffer.from(word.bytes).toString('hex')}`;
}
