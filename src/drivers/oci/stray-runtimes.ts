import { readFileSync, readdirSync } from 'node:fs';

/**
 * Ends runtime processes that work for a dead instance: one that was just starting a cell has no record yet by which
 * the runtime itself could find it. Told by their `--root`, which has the random name of the instance in it.
 */
export function killStrayRuntimes(stateDirectory: string): void {
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      if (words[words.indexOf('--root') + 1] === stateDirectory) process.kill(pid, 'SIGKILL');
    } catch {
      // Ended meanwhile.
    }
  }
}
