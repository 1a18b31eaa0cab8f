import { dirname } from 'node:path/posix';
import { normalPath, placeOf, type Findings, type PlacedTask } from './placed-task.ts';

interface Owner {
  readonly path: string;
  readonly placed: PlacedTask;
}

/**
 * What a task creates or changes belongs to it alone, in the whole graph and not only in its level: that is why the
 * branches of a level merge, and why every change has one task that answers for it.
 */
export function findOwnershipProblems(tasks: readonly PlacedTask[]): Findings {
  const problems: string[] = [];
  const warnings: string[] = [];
  const owners = new Map<string, Owner>();
  const folded = new Map<string, Owner>();
  for (const placed of tasks) {
    for (const { path, place } of ownedPaths(placed)) {
      const before = owners.get(path);
      if (before === undefined) {
        const other = folded.get(path.toLowerCase());
        if (other !== undefined && other.path !== path)
          warnings.push(
            `${place}: ${path} differs from ${other.path} of ${idOf(other)} in upper and lower case only`,
          );
        const owner = { path, placed };
        owners.set(path, owner);
        folded.set(path.toLowerCase(), other ?? owner);
      } else if (before.placed === placed) warnings.push(`${place}: ${path} is named twice`);
      else
        problems.push(
          `${place}: ${path} belongs to ${placeOf(before.placed)} already; a file belongs to one task`,
        );
    }
  }
  return { problems, warnings: [...warnings, ...findNested(owners)] };
}

function ownedPaths(placed: PlacedTask): { readonly path: string; readonly place: string }[] {
  const { files } = placed.task;
  return (['create', 'modify'] as const).flatMap((kind) =>
    files[kind].map((path, index) => ({
      path: normalPath(path),
      place: `${placeOf(placed)}.files.${kind}[${index}]`,
    })),
  );
}

/** A whole folder that one task owns, and a file below it that another does. */
function findNested(owners: ReadonlyMap<string, Owner>): string[] {
  return [...owners.values()].flatMap((owner) => {
    for (let folder = dirname(owner.path); folder !== '.'; folder = dirname(folder)) {
      const above = owners.get(folder);
      if (above !== undefined && above.placed !== owner.placed)
        return [`${placeOf(owner.placed)}.files: ${owner.path} lies below ${above.path} of ${idOf(above)}`];
    }
    return [];
  });
}

function idOf(owner: Owner): string {
  return owner.placed.id;
}
