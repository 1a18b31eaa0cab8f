import type { Task } from '../task-graph.ts';

/** SECURITY: a title comes from a file; what would end the line, or means something to a terminal, does not get in. */
function toLine(text: string): string {
  // oxlint-disable-next-line no-control-regex -- Exactly those are meant.
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').trim();
}

/** `recover.ts` knows a finished task by it. */
function toSubject({ id, title }: Pick<Task, 'id' | 'title'>): string {
  return `Mahabharatha [${id}]: ${toLine(title)}`;
}

export function toCommitMessage(task: Pick<Task, 'id' | 'title'>): string {
  return `${toSubject(task)}\n\nTask-ID: ${task.id}\n`;
}

/** What there is when the agent asks to be called again. */
export function toCheckpointMessage({ id, title }: Pick<Task, 'id' | 'title'>): string {
  return `WIP: ${toLine(title)}\n\nTask-ID: ${id}\n`;
}
