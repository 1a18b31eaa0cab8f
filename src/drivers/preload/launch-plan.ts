import type { ExecRequest, Reach } from '../../core/exec.ts';
import type { Limits } from '../../core/limits.ts';
import { toCommandFilter, type FilterNeeds } from './command-filter.ts';
import { toPathRules, type CellFolders } from './command-walls.ts';
import { TRUNCATION_SINCE, toLandlockPlan, type LandlockPlan } from './landlock.ts';
import type { SyscallTable } from '../linux/syscall-numbers.ts';

const GiB = 1024 ** 3;

/** What the kernel of this machine can do for us. */
export interface KernelLayer {
  /** The version of Landlock; 0 where there is none. */
  readonly landlock: number;
  readonly seccomp: boolean;
  /** A process outside can make connections for one inside. */
  readonly notify: boolean;
}

/** What guest/preload/launch.ts does to itself, in this order, before it becomes the program. */
export interface LaunchPlan {
  readonly numbers: Readonly<Record<string, number>>;
  /** Whose child it must be. */
  readonly parent: number;
  /** Ids to take on, and capabilities to keep; undefined where it stays who it is. */
  readonly identity: { readonly id: number; readonly capabilities: readonly number[] } | undefined;
  /** Cores it may use; undefined for all. */
  readonly cores: number | undefined;
  /** Number and value of each, soft and hard. */
  readonly rlimits: readonly (readonly [resource: number, value: number])[];
  readonly landlock: LandlockPlan | undefined;
  /** In base64. */
  readonly filter: string | undefined;
  /** Where connections lead, and the program that makes them. */
  readonly connector: { readonly port: number; readonly argv: readonly string[] } | undefined;
  readonly cwd: string;
  readonly touch: string | undefined;
  readonly program: string;
  readonly argv: readonly string[];
  readonly env: readonly string[];
}

/** Calls that the launcher itself makes. */
const OWN_CALLS = `
  capset chdir close_range execve exit_group getppid landlock_add_rule landlock_create_ruleset landlock_restrict_self
  openat pipe2 prctl prlimit64 read rt_sigaction rt_sigprocmask sched_getaffinity sched_setaffinity seccomp setgroups
  setresgid setresuid write close pidfd_open pidfd_getfd process_vm_readv ppoll ioctl connect
`;

const RLIMIT_FSIZE = 1;
const RLIMIT_DATA = 2;
const RLIMIT_CORE = 4;
const RLIMIT_NPROC = 6;
const RLIMIT_NOFILE = 7;
/** Bun reserves more than 2 GiB that it never touches. */
const RESERVED_BYTES = 4 * GiB;

const CAP_DAC_OVERRIDE = 1;
const CAP_DAC_READ_SEARCH = 2;

export interface LaunchSubject {
  readonly request: ExecRequest & { readonly cwd: string };
  /** The program of the request, as a path. */
  readonly program: string;
  readonly reach: Reach;
  readonly places: CellFolders;
  readonly limits: Limits;
  /** Host id of the cell's own user; undefined where we cannot be anybody else. */
  readonly id: number | undefined;
  /** Some of the places are closed to everybody but us. */
  readonly closedPlaces: boolean;
  readonly connector: readonly string[];
}

export function ownNumbers(table: SyscallTable): Record<string, number> {
  const names = OWN_CALLS.split(/\s+/).filter((name) => name !== '');
  return Object.fromEntries(names.map((name) => [name, table.numbers.get(name) ?? -1]));
}

export function toLaunchPlan(
  subject: LaunchSubject,
  kernel: KernelLayer,
  table: SyscallTable,
  parent: number,
): LaunchPlan {
  const { request, program, reach, places, limits, id } = subject;
  const connects = reach.port !== undefined && kernel.notify;
  return {
    numbers: ownNumbers(table),
    parent,
    identity: id === undefined ? undefined : { id, capabilities: toCapabilities(subject) },
    cores: toCores(limits),
    rlimits: toRlimits(limits, id !== undefined),
    landlock:
      kernel.landlock === 0
        ? undefined
        : toLandlockPlan(kernel.landlock, toPathRules(program, places, reach)),
    filter: kernel.seccomp
      ? filterText(table, {
          forks: reach.programs,
          connects,
          ownIdentity: id !== undefined,
          truncation: kernel.landlock >= TRUNCATION_SINCE,
        })
      : undefined,
    connector: connects ? { port: reach.port, argv: subject.connector } : undefined,
    cwd: request.cwd,
    touch: request.touch,
    program,
    argv: request.argv,
    env: Object.entries(request.env).map(([name, value]) => `${name}=${value}`),
  };
}

const filters = new Map<string, string>();

/** There are only a few of them, and a command should not wait while one is made. */
function filterText(table: SyscallTable, needs: FilterNeeds): string {
  const key = JSON.stringify([table.audit, needs]);
  const made = filters.get(key) ?? Buffer.from(toCommandFilter(table, needs)).toString('base64');
  filters.set(key, made);
  return made;
}

/** Whole cores are kept by the kernel; a share of one is not. */
export function toCores(limits: Pick<Limits, 'cpus'>): number | undefined {
  return Number.isInteger(limits.cpus) ? limits.cpus : undefined;
}

/**
 * The cell's own user has no rights to what belongs to others. SECURITY: where a path was granted by name, Landlock is what
 * bounds it, so the user gets past the modes of files, and past nothing else.
 */
function toCapabilities({ reach, closedPlaces }: LaunchSubject): number[] {
  if (reach.write.length > 0) return [CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH];
  return reach.read.length > 0 || closedPlaces ? [CAP_DAC_READ_SEARCH] : [];
}

function toRlimits(limits: Limits, ownIdentity: boolean): [number, number][] {
  return [
    [RLIMIT_CORE, 0],
    [RLIMIT_FSIZE, limits.diskBytes],
    [RLIMIT_NOFILE, limits.openFiles],
    // No more than a bound for bursts between two looks of the supervisor.
    [RLIMIT_DATA, limits.memoryBytes + RESERVED_BYTES],
    // Counted by user: it would count everything else of ours.
    ...(ownIdentity ? [[RLIMIT_NPROC, limits.processes] satisfies [number, number]] : []),
  ];
}
