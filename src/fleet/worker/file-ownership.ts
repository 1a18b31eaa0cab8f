import { posix } from 'node:path';
import type { Task } from '../task-graph.ts';

/** What was changed and is neither to be made nor to be changed by this task. A folder stands for all that is in it. */
export function foreignFiles(task: Pick<Task, 'files'>, changed: readonly string[]): string[] {
  const owned = [...task.files.create, ...task.files.modify].map((path) => posix.normalize(path));
  return changed.filter(
    (file) => !owned.some((path) => file === path || file.startsWith(path.replace(/\/?$/, '/'))),
  );
}
