import { readFileSync, readdirSync } from 'node:fs';

export interface SeenProcess {
  readonly pid: number;
  readonly parent: number;
  /** In ticks since the boot: with it a number that somebody else has got is told apart. */
  readonly startedAt: string;
  readonly state: string;
  readonly words: string;
  readonly groups: string;
}

export function listAll(): SeenProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => read(Number(pid)));
}

function read(pid: number): SeenProcess[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program may hold anything, so the fields are counted from behind it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return [
      {
        pid,
        state: fields[0] ?? '',
        parent: Number(fields[1]),
        startedAt: fields[19] ?? '',
        words: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim(),
        groups: readFileSync(`/proc/${pid}/cgroup`, 'utf8'),
      },
    ];
  } catch {
    // It has ended meanwhile.
    return [];
  }
}

/** Everything that a process has started, and what that has started. */
export function descendantsOf(ancestor: number): SeenProcess[] {
  const all = listAll();
  const found: SeenProcess[] = [];
  const parents = new Set([ancestor]);
  for (let before = -1; before < found.length;) {
    before = found.length;
    for (const seen of all) {
      if (parents.has(seen.pid) || !parents.has(seen.parent)) continue;
      parents.add(seen.pid);
      found.push(seen);
    }
  }
  return found;
}

/** Is it still this process, and not one that only waits for its parent? */
export function isAlive({ pid, startedAt }: SeenProcess): boolean {
  return read(pid).some((now) => now.startedAt === startedAt && now.state !== 'Z');
}

/** Signals whoever is still there. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended meanwhile.
    }
  }
}
