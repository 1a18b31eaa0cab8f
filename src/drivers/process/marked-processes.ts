import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Variable that marks every process of a cell that has no walls; children inherit it. */
export const MARK = 'HOTCELL_CELL';

/** Processes whose environment carries the mark `value`, or any mark that starts with it. */
function findMarked(value: string): number[] {
  const needle = `${MARK}=${value}`;
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/environ`, 'latin1')
          .split('\0')
          .some((entry) => entry.startsWith(needle));
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** Asks marked processes to end, once; what they start after that is not asked. */
export function terminateMarked(value: string): void {
  for (const pid of findMarked(value)) signal(pid, 'SIGTERM');
}

/** False when it has ended meanwhile. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/**
 * Kills marked processes until none is found: also those that left their process group or were forked meanwhile.
 * A process that cleared its environment escapes; that is one of the reasons why this is no boundary.
 */
export async function killMarked(value: string): Promise<number> {
  let killed = 0;
  for (let round = 0; round < 50; round++) {
    const pids = findMarked(value);
    if (pids.length === 0) return killed;
    for (const pid of pids) if (signal(pid, 'SIGKILL')) killed++;
    await sleep(10);
  }
  return killed;
}
