import type { FinalReport } from '../../fleet/status/final-report.ts';
import { renderTable } from '../render/table.ts';
import type { Terminal } from '../terminal.ts';
import { toCostText, toFigureColumns } from './cost-text.ts';
import { toDurationText } from './duration-text.ts';
import { oneLine } from '../../lib/one-line.ts';
import { paintStatus, renderAttention } from './status-sections.ts';

/** What each task did, took and changed. */
export function renderReport(terminal: Terminal, report: FinalReport): void {
  const { paint } = terminal;
  const figures = toFigureColumns(report.tasks);
  const rows = report.tasks.map((task) => [
    oneLine(task.id),
    paintStatus(task.status, paint),
    task.worker === undefined ? '' : String(task.worker),
    task.attempts === 0 ? '' : String(task.attempts),
    task.durationMs === undefined ? '' : toDurationText(task.durationMs),
    ...figures.of(task),
    task.changedFiles === undefined ? '' : `${task.changedFiles}${task.foreignFiles.length > 0 ? '!' : ''}`,
    oneLine(task.commit?.slice(0, 10) ?? ''),
    oneLine(task.title),
  ]);
  const heading = [
    'TASK',
    'STATUS',
    'WORKER',
    'ATTEMPTS',
    'TIME',
    ...figures.heading,
    'FILES',
    'COMMIT',
    'TITLE',
  ];
  for (const line of renderTable([heading, ...rows]).split('\n')) terminal.line(line);
  const { totals, progress } = report;
  const facts = [
    `${progress.complete} of ${progress.total} tasks complete`,
    ...(totals.elapsedMs === undefined ? [] : [`${toDurationText(totals.elapsedMs)} in all`]),
    `${toDurationText(totals.workMs)} of work`,
    `${totals.changedFiles} files changed`,
    `${totals.attempts} attempts`,
    ...(totals.agent === undefined ? [] : [toCostText(totals.agent)]),
    ...(totals.restarts > 0 ? [`${totals.restarts} cells replaced`] : []),
  ];
  terminal.line('');
  terminal.line(facts.join(', '));
  for (const { id, foreignFiles } of report.tasks) {
    if (foreignFiles.length > 0)
      terminal.line(
        `${paint.yellow('!')} ${oneLine(`${id} changed files that it does not own: ${foreignFiles.join(', ')}`, 400)}`,
      );
  }
  for (const line of renderAttention(report.attention, paint)) terminal.line(line);
}
