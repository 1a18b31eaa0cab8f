import { readFileSync, readdirSync } from 'node:fs';

const TICK_MS = 10;
const KiB = 1024;

/** What a command takes at this moment. */
export interface Figures {
  readonly memoryBytes: number;
  readonly threads: number;
  /** Of what runs, and of what it has waited for. */
  readonly cpuMs: number;
}

/** All processes of a group. They cannot leave it: the filter of system calls sees to that. */
export function membersOf(group: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => Number(statOf(pid)?.[2]) === group);
}

export function figuresOf(pids: readonly number[]): Figures {
  const all = pids.map(figuresOfOne);
  const sum = (pick: (figures: Figures) => number): number =>
    all.reduce((total, figures) => total + pick(figures), 0);
  return {
    memoryBytes: sum(({ memoryBytes }) => memoryBytes),
    threads: sum(({ threads }) => threads),
    cpuMs: sum(({ cpuMs }) => cpuMs),
  };
}

/** Memory without the pages of programs and libraries, which are the host's. */
function figuresOfOne(pid: number): Figures {
  const status = readProc(`${pid}/status`) ?? '';
  const field = (name: string): number =>
    Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(status)?.[1] ?? 0);
  const ticks = (statOf(pid) ?? []).slice(11, 15).reduce((total, value) => total + Number(value), 0);
  return {
    memoryBytes: (field('RssAnon') + field('RssShmem') + field('VmSwap')) * KiB,
    threads: field('Threads'),
    cpuMs: ticks * TICK_MS,
  };
}

/** When the process started, which with its number names it for ever; undefined when there is none. */
export function startOf(pid: number): string | undefined {
  return statOf(pid)?.[19];
}

/** Fields from the third on; the name before them may contain anything. */
function statOf(pid: number): string[] | undefined {
  const text = readProc(`${pid}/stat`);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** Says whether there was anybody. */
export function signalGroup(group: number, signal: 'SIGKILL' | 'SIGTERM'): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}

/**
 * Kills what is left of a group whose first process started at `start`. The kernel gives no number to a new process as
 * long as a group has it, so another process of that number means that nothing is left.
 */
export function killLeftGroup(group: number, start: string): void {
  const leader = startOf(group);
  if (leader !== undefined && leader !== start) return;
  const areOurs = membersOf(group).every((pid) => /^NoNewPrivs:\s*1/m.test(readProc(`${pid}/status`) ?? ''));
  if (areOurs) signalGroup(group, 'SIGKILL');
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'latin1');
  } catch {
    return undefined;
  }
}
