import type * as z from 'zod';
import { HotcellError } from '../../core/errors.ts';
import { Task, TaskGraph } from '../task-graph.ts';
import { findCycles } from './find-cycles.ts';
import { findOwnershipProblems } from './file-owners.ts';
import { findLevelProblems } from './level-section.ts';
import { placeOf, type Findings, type PlacedTask } from './placed-task.ts';

/** SECURITY: an agent writes graphs, and what looks at one must end soon. */
const MOST_TASKS = 5000;

export interface GraphCheck extends Findings {
  /** Undefined while there are problems. */
  readonly graph: TaskGraph | undefined;
}

/**
 * Everything that is wrong with a graph, not only the first thing: whoever corrects it, a person or an agent, does so
 * once. What the schema refuses in one task does not hide what is wrong with the others.
 */
export function checkGraph(content: unknown, feature?: string): GraphCheck {
  const count = rawTasks(content).length;
  if (count > MOST_TASKS) {
    const problem = `tasks: ${count} are more than ${MOST_TASKS}; split the feature`;
    return { problems: [problem], warnings: [], graph: undefined };
  }
  const parsed = TaskGraph.safeParse(content);
  const raw = rawTasks(content);
  const tasks = raw.flatMap((value, index): PlacedTask[] => {
    const { data: task } = Task.safeParse(value);
    return task === undefined ? [] : [{ index, id: task.id, task }];
  });
  const findings = [
    { problems: (parsed.error?.issues ?? []).flatMap((issue) => describe(issue, raw)), warnings: [] },
    findIdProblems(raw),
    findDependencyProblems(tasks, raw),
    findOwnershipProblems(tasks),
    ...(parsed.data === undefined
      ? []
      : [findLevelProblems(parsed.data, tasks), nameFeature(parsed.data, feature)]),
  ];
  const problems = findings.flatMap((found) => found.problems);
  const warnings = findings.flatMap((found) => found.warnings);
  return { problems, warnings, graph: problems.length === 0 ? parsed.data : undefined };
}

export interface ValidGraph {
  readonly graph: TaskGraph;
  readonly warnings: readonly string[];
}

/** @param name what messages call the graph: mostly its file */
export function validateGraph(content: unknown, name: string, feature?: string): ValidGraph {
  const { graph, problems, warnings } = checkGraph(content, feature);
  if (graph !== undefined) return { graph, warnings };
  throw graphError(`${name}: ${toProblemText(problems)}`);
}

export function toProblemText(problems: readonly string[]): string {
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  return `the task graph has ${count}:\n${problems.map((problem) => `  ${problem}`).join('\n')}`;
}

export function graphError(message: string, cause?: unknown): HotcellError {
  return new HotcellError('GRAPH_INVALID', message, {
    cause,
    hint: 'Correct the file, or have a new one made: hotcell fleet design. To check it: hotcell fleet design --validate-only',
  });
}

function rawTasks(content: unknown): readonly unknown[] {
  const isGraph = typeof content === 'object' && content !== null && 'tasks' in content;
  return isGraph && Array.isArray(content.tasks) ? content.tasks : [];
}

/** An id that is at least text: what other tasks may refer to, whatever else is wrong with the task. */
function rawId(value: unknown): string | undefined {
  const has = typeof value === 'object' && value !== null && 'id' in value;
  return has && typeof value.id === 'string' && value.id !== '' ? value.id : undefined;
}

function describe(issue: z.core.$ZodIssue, raw: readonly unknown[]): string[] {
  const [first, index, ...rest] = issue.path;
  const reason = issue.message
    .replace(/^(Invalid|Too) \w+: /, '')
    .replace(/^Invalid input$/, 'has the wrong form');
  if (first === 'tasks' && typeof index === 'number') {
    const id = rawId(raw[index]);
    return [`tasks[${index}]${id === undefined ? '' : ` (${id})`}${toPath(rest)}: ${reason}`];
  }
  const path = toPath(issue.path).replace(/^\./, '');
  return [path === '' ? `must be an object with feature and tasks: ${reason}` : `${path}: ${reason}`];
}

function toPath(parts: readonly PropertyKey[]): string {
  return parts.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
}

function findIdProblems(raw: readonly unknown[]): Findings {
  const problems: string[] = [];
  const warnings: string[] = [];
  const first = new Map<string, number>();
  const folded = new Map<string, string>();
  for (const [index, value] of raw.entries()) {
    const id = rawId(value);
    if (id === undefined) continue;
    const before = first.get(id);
    if (before !== undefined) {
      problems.push(`${placeOf({ index, id })}.id: tasks[${before}] has the same id`);
      continue;
    }
    first.set(id, index);
    const other = folded.get(id.toLowerCase());
    if (other === undefined) folded.set(id.toLowerCase(), id);
    else warnings.push(`${placeOf({ index, id })}.id: differs from ${other} in upper and lower case only`);
  }
  return { problems, warnings };
}

function findDependencyProblems(tasks: readonly PlacedTask[], raw: readonly unknown[]): Findings {
  const problems: string[] = [];
  const warnings: string[] = [];
  const known = new Set(raw.flatMap((value) => rawId(value) ?? []));
  const levels = new Map(tasks.map(({ id, task }) => [id, task.level]));
  for (const placed of tasks) {
    const { id, task } = placed;
    const seen = new Set<string>();
    for (const [index, dependency] of task.dependencies.entries()) {
      const place = `${placeOf(placed)}.dependencies[${index}]`;
      const level = levels.get(dependency);
      if (dependency === id) problems.push(`${place}: a task cannot depend on itself`);
      else if (!known.has(dependency))
        problems.push(`${place}: there is no task ${JSON.stringify(dependency)}`);
      else if (level !== undefined && level >= task.level)
        problems.push(
          `${place}: ${dependency} is in level ${level}, which is not below level ${task.level} of this task`,
        );
      if (seen.has(dependency)) warnings.push(`${place}: ${dependency} is named twice`);
      seen.add(dependency);
    }
  }
  const edges = new Map(
    tasks.map(({ id, task }) => [id, task.dependencies.filter((dependency) => dependency !== id)]),
  );
  for (const cycle of findCycles(edges)) {
    const start = tasks.find(({ id }) => id === cycle[0]);
    const circle = [...cycle, cycle[0]].join(' → ');
    if (start !== undefined)
      problems.push(`${placeOf(start)}.dependencies: each waits for the next: ${circle}`);
  }
  return { problems, warnings };
}

function nameFeature(graph: TaskGraph, feature: string | undefined): Findings {
  const differs = feature !== undefined && graph.feature !== feature;
  return {
    problems: [],
    warnings: differs
      ? [`feature: the graph is for ${JSON.stringify(graph.feature)}, and is used for ${feature}`]
      : [],
  };
}
