/** The candidate that a misspelt name most likely meant, or undefined when none is near. */
function nearestName(name: string, candidates: readonly string[]): string | undefined {
  const wanted = simplify(name);
  if (wanted === '') return undefined;
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = Math.min(
      editDistance(wanted, simplify(candidate)),
      // A setting that was named without its section: `memoryBytes` for `limits.memoryBytes`.
      editDistance(wanted, simplify(candidate.slice(candidate.lastIndexOf('.') + 1))) + 0.5,
    );
    if (best === undefined || distance < best.distance) best = { candidate, distance };
  }
  const mostEdits = Math.max(1, Math.floor(wanted.length / 3)) + 0.5;
  return best !== undefined && best.distance <= mostEdits ? best.candidate : undefined;
}

export function didYouMean(name: string, candidates: readonly string[]): string {
  const nearest = nearestName(name, candidates);
  return nearest === undefined ? '' : `; did you mean ${nearest}?`;
}

function simplify(name: string): string {
  return name.toLowerCase().replace(/[._-]/g, '');
}

/** Insertions, deletions, replacements and swaps of neighbours between two words. */
function editDistance(left: string, right: string): number {
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i++) {
    const next = [i];
    for (let j = 1; j <= right.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1);
      const isSwap = left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      const swapped = isSwap ? (before[j - 2] ?? Infinity) + 1 : Infinity;
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, swapped));
    }
    before = row;
    row = next;
  }
  return row[right.length] ?? 0;
}
