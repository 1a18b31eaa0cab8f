import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

interface Stat {
  readonly pid: number;
  readonly parent: number;
  /** Of the process itself. */
  readonly ownCpuMs: number;
  /** Of children that have ended and were waited for, with all of theirs. */
  readonly endedChildrenCpuMs: number;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // It has ended in the meantime.
    return undefined;
  }
}

function readStat(pid: number): Stat | undefined {
  const text = readText(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // The name in field 2 may hold anything: count from its closing bracket, after which field 3 comes.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ticks = (first: number): number => Number(fields[first - 3]) + Number(fields[first - 2]);
  const toMs = 1000 / TICKS_PER_SECOND;
  return {
    pid,
    parent: Number(fields[1]),
    ownCpuMs: ticks(14) * toMs,
    endedChildrenCpuMs: ticks(16) * toMs,
  };
}

/** Runtimes and cells are children of the server's keeper, and booked to it when they have ended. */
export function cpuOf(pid: number): { ownMs: number; endedChildrenMs: number } {
  const stat = readStat(pid);
  if (stat === undefined) throw new Error(`process ${pid} has ended`);
  const keepers = treeOf(pid).filter(
    (below) => readText(`/proc/${below}/cmdline`)?.includes('keeper.bash') === true,
  );
  const booked = [stat, ...keepers.map((keeper) => readStat(keeper))];
  return {
    ownMs: stat.ownCpuMs,
    endedChildrenMs: booked.reduce((sum, process) => sum + (process?.endedChildrenCpuMs ?? 0), 0),
  };
}

/** A process and everything below it. */
function treeOf(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined;
    if (stat !== undefined) children.set(stat.parent, [...(children.get(stat.parent) ?? []), stat.pid]);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** What a process and everything below it hold; pages that several share count once, by their parts. */
export function memoryOfTree(root: number): number {
  const sizes = treeOf(root).map((pid) => {
    const rollup = readText(`/proc/${pid}/smaps_rollup`) ?? '';
    return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) * 1024;
  });
  return sizes.reduce((sum, size) => sum + size, 0);
}

export function availableMemory(): number {
  const text = readText('/proc/meminfo') ?? '';
  return Number(/^MemAvailable:\s+(\d+) kB/m.exec(text)?.[1] ?? Number.NaN) * 1024;
}
