const MOST_CYCLES = 20;

/**
 * Circles among dependencies, each by its members in order; no task is in two of them. Where there are very many, the
 * first ones. Without recursion, because a
 * graph may be a chain of any length.
 */
export function findCycles(dependencies: ReadonlyMap<string, readonly string[]>): string[][] {
  const left = new Map(
    [...dependencies].map(([id, needed]) => [id, needed.filter((other) => dependencies.has(other))]),
  );
  const cycles: string[][] = [];
  for (;;) {
    dropFree(left);
    const [start] = left.keys();
    if (start === undefined || cycles.length === MOST_CYCLES) return cycles;
    const cycle = walk(left, start);
    cycles.push(cycle);
    for (const id of cycle) left.delete(id);
  }
}

/** Drops every task that waits for none of those that are left. */
function dropFree(left: Map<string, string[]>): void {
  const waiting = new Map<string, string[]>();
  const counts = new Map<string, number>();
  const free: string[] = [];
  for (const [id, needed] of left) {
    const inside = needed.filter((other) => left.has(other));
    left.set(id, inside);
    counts.set(id, inside.length);
    if (inside.length === 0) free.push(id);
    for (const other of inside) addTo(waiting, other, id);
  }
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    left.delete(id);
    for (const other of waiting.get(id) ?? []) {
      const count = (counts.get(other) ?? 0) - 1;
      counts.set(other, count);
      if (count === 0) free.push(other);
    }
  }
}

function addTo(lists: Map<string, string[]>, key: string, id: string): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [id]);
  else list.push(id);
}

/** Everything that is left waits for something that is left: going on always leads back. */
function walk(left: ReadonlyMap<string, readonly string[]>, start: string): string[] {
  const seen = new Map<string, number>();
  const path: string[] = [];
  let at = start;
  for (;;) {
    const before = seen.get(at);
    if (before !== undefined) return path.slice(before);
    seen.set(at, path.length);
    path.push(at);
    at = left.get(at)?.find((other) => left.has(other)) ?? at;
  }
}
