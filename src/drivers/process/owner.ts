import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import * as z from 'zod';
import { errnoOf } from '../../lib/errno.ts';
import { parseJson } from '../../lib/parse-json.ts';
import { runCommand } from './run-command.ts';

const Owner = z.object({
  pid: z.int().positive(),
  /** When the process started; with the pid it is never given twice. Empty where nobody could tell. */
  startTicks: z.string(),
  /** Pids of another namespace or machine mean nothing here. */
  pidNamespace: z.string(),
  machine: z.string().default(machineName),
});
type Owner = z.infer<typeof Owner>;

/** `alive` also where it cannot be told: whoever asks is about to remove something. */
export type OwnerState = 'alive' | 'dead' | 'unreadable';

/** A record of this process, to be kept with what it makes. */
export async function ownerRecord(): Promise<string> {
  const owner: Owner = {
    pid: process.pid,
    startTicks: (await startOf(process.pid).catch(() => undefined)) ?? '',
    pidNamespace: ownPidNamespace(),
    machine: machineName(),
  };
  return JSON.stringify(owner);
}

/** Does the process of this record still run? */
export async function judgeOwner(record: string): Promise<OwnerState> {
  const owner = Owner.safeParse(parseJson(record));
  if (!owner.success) return 'unreadable';
  const { pid, startTicks } = owner.data;
  // Somebody whose processes cannot be seen from here: leave it to a start over there.
  if (!isHere(owner.data)) return 'alive';
  return (await isSame(pid, startTicks)) ? 'alive' : 'dead';
}

/** By which signals reach the process of this record; undefined from another machine or namespace. */
export function reachablePid(record: string): number | undefined {
  const { data } = Owner.safeParse(parseJson(record));
  return data !== undefined && isHere(data) ? data.pid : undefined;
}

function isHere({ machine, pidNamespace }: Owner): boolean {
  return machine === machineName() && pidNamespace === ownPidNamespace();
}

async function isSame(pid: number, startTicks: string): Promise<boolean> {
  if (startTicks === '') return isThere(pid);
  try {
    return (await startOf(pid)) === startTicks;
  } catch {
    // We could not look, for want of a descriptor perhaps; that is no reason to take anybody for dead.
    return isThere(pid);
  }
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errnoOf(error) !== 'ESRCH';
  }
}

function machineName(): string {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim() || hostname();
  } catch {
    return hostname();
  }
}

function ownPidNamespace(): string {
  return process.platform === 'linux' ? readlinkSync('/proc/self/ns/pid') : '';
}

/** When a process started; undefined when there is none. Throws when it cannot be told. */
async function startOf(pid: number): Promise<string | undefined> {
  return process.platform === 'linux' ? startTicksOf(pid) : startTimeOf(pid);
}

/** Field 22 of /proc/<pid>/stat; the name in field 2 may contain anything, so count from its closing bracket. */
function startTicksOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch (error) {
    if (/^(ENOENT|ESRCH)$/.test(errnoOf(error) ?? '')) return undefined;
    throw error;
  }
}

async function startTimeOf(pid: number): Promise<string | undefined> {
  const { stdout } = await runCommand(['ps', '-o', 'lstart=', '-p', String(pid)]);
  return stdout.trim() || undefined;
}
