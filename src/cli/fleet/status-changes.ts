import type { StatusView } from '../../fleet/status/status-view.ts';
import { toPrintable } from '../../lib/printable.ts';
import { toDurationText } from './duration-text.ts';

/** What is different since the last look, a line each, for those who read a log. */
export function describeChanges(before: StatusView, now: StatusView): string[] {
  const lines: string[] = [];
  if (before.runState !== now.runState) lines.push(`the fleet is ${now.runState}`);
  const oldLevels = new Map(before.levels.map((level) => [level.level, level]));
  for (const { level, status, mergeStatus, complete, total } of now.levels) {
    const old = oldLevels.get(level);
    if (old?.status === status && old.mergeStatus === mergeStatus) continue;
    const merge = mergeStatus === undefined ? '' : `, merge ${mergeStatus}`;
    lines.push(`level ${level}: ${status}${merge}, ${complete} of ${total} tasks`);
  }
  const oldTasks = new Map(before.tasks.map((task) => [task.id, task]));
  for (const task of now.tasks) {
    const old = oldTasks.get(task.id);
    if (old?.status === task.status && old.attempts === task.attempts && old.worker === task.worker) continue;
    const facts = [
      ...(task.worker === undefined ? [] : [`worker ${task.worker}`]),
      ...(task.attempts > 1 ? [`attempt ${task.attempts}`] : []),
      ...(task.status === 'complete' && task.durationMs !== undefined
        ? [toDurationText(task.durationMs)]
        : []),
    ];
    lines.push(`${task.id}: ${task.status}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`);
  }
  const oldWorkers = new Map(before.workers.map((worker) => [worker.worker, worker]));
  for (const { worker, status } of now.workers) {
    if (oldWorkers.get(worker)?.status !== status) lines.push(`worker ${worker}: ${status}`);
  }
  const told = new Set(before.attention.map(({ text }) => text));
  for (const { text, instructions } of now.attention) {
    if (!told.has(text)) lines.push(text, ...instructions.map((line) => `  → ${line}`));
  }
  return lines.map((line) => toPrintable(line.replaceAll(/[\r\n]+/g, ' ')));
}
