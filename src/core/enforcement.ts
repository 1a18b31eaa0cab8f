import { HotcellError } from './errors.ts';
import { LIMIT_NAMES } from './limits.ts';

export type EnforcedBy = 'kernel' | 'hypervisor' | 'supervisor' | 'nobody';

/** What a cell promises: every limit, and the walls around it. */
export const PROMISES = [
  ...LIMIT_NAMES,
  'network',
  'filesystem',
  'identity',
  'processView',
  'syscalls',
] as const;
export type Promised = (typeof PROMISES)[number];

export const PROMISE_MEANING: Readonly<Record<Promised, string>> = {
  cpus: 'no more CPU than granted',
  memoryBytes: 'no more memory than granted, swap included',
  processes: 'no more processes and threads than granted',
  diskBytes: 'no more bytes on disk than granted',
  openFiles: 'no more open files than granted',
  wallTimeMs: 'ends in time, with all its processes',
  outputBytes: 'no more output than granted',
  network: 'no network, not even the loopback of the host',
  filesystem: 'sees no host files but programs and libraries, writes only to its own /tmp',
  identity: 'runs as nobody that exists on the host, without any privilege',
  processView: 'sees and signals only its own processes',
  syscalls: 'only an allow-list of system calls',
};

/** Who keeps each promise. */
export type Enforcement = Readonly<Record<Promised, EnforcedBy>>;

/** All of it by one, but for what is said otherwise. Time and output are watched from outside, whoever keeps the rest. */
export function enforcedBy(wall: EnforcedBy, others: Partial<Enforcement> = {}): Enforcement {
  return {
    cpus: wall,
    memoryBytes: wall,
    processes: wall,
    diskBytes: wall,
    openFiles: wall,
    wallTimeMs: 'supervisor',
    outputBytes: 'supervisor',
    network: wall,
    filesystem: wall,
    identity: wall,
    processView: wall,
    syscalls: wall,
    ...others,
  };
}

export function unenforced(enforcement: Enforcement): Promised[] {
  return PROMISES.filter((promise) => enforcement[promise] === 'nobody');
}

/**
 * Throws before anything runs when a promise has nobody behind it and was not given up by name.
 * SECURITY: without this call a driver would silently run with less protection than was asked for.
 */
export function requireEnforcement(enforcement: Enforcement, givenUp: readonly Promised[]): void {
  const missing = unenforced(enforcement).filter((promise) => !givenUp.includes(promise));
  if (missing.length === 0) return;
  throw new HotcellError('POLICY_UNENFORCEABLE', `nobody enforces: ${missing.join(', ')}`, {
    hint: `Use a driver that does, or accept less by name: --weaker ${[...givenUp, ...missing].join(',')}`,
  });
}
