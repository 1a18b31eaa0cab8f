import { posix } from 'node:path';
import type { Task } from '../task-graph.ts';

/** A task as far as it can be read, and where it stands. */
export interface PlacedTask {
  readonly index: number;
  readonly id: string;
  readonly task: Task;
}

export interface Findings {
  /** What keeps the graph from being run, one line for each. */
  readonly problems: readonly string[];
  /** What is odd and does no harm. */
  readonly warnings: readonly string[];
}

/** `tasks[3] (API-L2-004)`, as every message begins that is about a task. */
export function placeOf({ index, id }: Pick<PlacedTask, 'index' | 'id'>): string {
  return `tasks[${index}] (${id})`;
}

/** A path as two tasks may write it differently. */
export function normalPath(path: string): string {
  return posix.normalize(path).replace(/^\.\//, '').replace(/\/+$/, '');
}
