import { levelsOf } from '../run/schedule.ts';
import type { TaskGraph } from '../task-graph.ts';
import { placeOf, type Findings, type PlacedTask } from './placed-task.ts';

/** The section `levels` says again what the tasks say. Where it differs, nobody knows which was meant. */
export function findLevelProblems(graph: TaskGraph, tasks: readonly PlacedTask[]): Findings {
  const used = levelsOf({ tasks: tasks.map(({ task }) => task) });
  const warnings = findGaps(used);
  const problems: string[] = [];
  for (const [key, level] of Object.entries(graph.levels ?? {})) {
    const place = `levels.${key}`;
    const number = Number(key);
    if (!Number.isInteger(number) || number < 1) {
      problems.push(`${place}: must be the number of a level, from 1 on`);
      continue;
    }
    problems.push(...compareTasks(place, { number, listed: level.tasks }, tasks));
    for (const [index, below] of (level.depends_on_levels ?? []).entries()) {
      if (below >= number)
        problems.push(`${place}.depends_on_levels[${index}]: level ${below} is not below level ${number}`);
    }
    if (!used.includes(number)) warnings.push(`${place}: no task has this level`);
  }
  if (graph.levels !== undefined) {
    const named = new Set(Object.keys(graph.levels).map(Number));
    for (const number of used) if (!named.has(number)) warnings.push(`levels: does not name level ${number}`);
  }
  return { problems, warnings };
}

function findGaps(used: readonly number[]): string[] {
  const before = [0, ...used];
  return used.flatMap((number, index) => {
    const last = before[index] ?? 0;
    return number > last + 1 ? [`levels: no task is between level ${last} and level ${number}`] : [];
  });
}

/** A level that lists no tasks leaves it to the tasks. */
function compareTasks(
  place: string,
  { number, listed }: { readonly number: number; readonly listed: readonly string[] },
  tasks: readonly PlacedTask[],
): string[] {
  if (listed.length === 0) return [];
  const byId = new Map(tasks.map((placed) => [placed.id, placed]));
  const first = new Map(listed.map((id, index) => [id, index] as const).toReversed());
  const wrong = listed.flatMap((id, index) => {
    const at = `${place}.tasks[${index}]`;
    const level = byId.get(id)?.task.level;
    if (level === undefined) return [`${at}: there is no task ${JSON.stringify(id)}`];
    if (first.get(id) !== index) return [`${at}: ${id} is named twice`];
    return level === number ? [] : [`${at}: ${id} says that it is in level ${level}`];
  });
  const unnamed = tasks.filter(({ id, task }) => task.level === number && !first.has(id));
  return [
    ...wrong,
    ...unnamed.map((placed) => `${placeOf(placed)}.level: ${place}.tasks does not name this task`),
  ];
}
