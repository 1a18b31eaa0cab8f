import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { globSync } from 'node:fs';

/** What of us can be seen on the host: to be compared before and after. */
export interface Traces {
  readonly processes: string[];
  readonly cgroups: string[];
  readonly mounts: string[];
  readonly folders: string[];
}

/** Everything that names the given state directory or one of its instances. */
export function findTraces(stateDirectory: string, instances: readonly string[] = []): Traces {
  const ids = [...new Set([...listFolder(stateDirectory), ...instances])];
  const isOurs = (text: string): boolean =>
    text.includes(stateDirectory) || ids.some((id) => text.includes(id));
  return {
    processes: listProcesses().filter(isOurs),
    cgroups: ids.flatMap((id) => globSync(`/sys/fs/cgroup/{,*/}hotcell/${id}`)),
    mounts: readFileSync('/proc/self/mountinfo', 'utf8').split('\n').filter(isOurs),
    folders: listFolder(stateDirectory),
  };
}

function listFolder(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Command lines of all live processes. Zombies have none: they hold nothing but a number. */
export function listProcesses(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    })
    .filter((line) => line !== '');
}

const SHORTEST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 100;

/** Waits until `condition` holds; a bounded wait for something that must happen, not a pause in hope. */
export async function waitFor(
  what: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = 60_000,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  let pauseMs = SHORTEST_PAUSE_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`did not happen in ${withinMs} ms: ${what}`);
    await sleep(pauseMs);
    // Looking costs work, too, of the very machine that is waited for.
    pauseMs = Math.min(pauseMs * 1.15, LONGEST_PAUSE_MS);
  }
}
