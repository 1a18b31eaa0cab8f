import type { LevelView, StatusView, TaskView, WorkerView } from '../../fleet/status/status-view.ts';
import { toSizeText } from '../../lib/size-text.ts';
import { renderTable } from '../render/table.ts';
import type { Terminal } from '../terminal.ts';
import { toDurationText } from './duration-text.ts';
import { toCostText, toFigureColumns, toPrice } from './cost-text.ts';
import { oneLine } from '../../lib/one-line.ts';

type Paints = Terminal['paint'];
const BAR_WIDTH = 24;
const SHORT_HASH = 10;

export function renderHead(view: StatusView, paint: Paints): string[] {
  const { progress, orchestrator } = view;
  const share = progress.total === 0 ? 0 : progress.complete / progress.total;
  const full = Math.round(share * BAR_WIDTH);
  const counts = [
    `${progress.complete} of ${progress.total} tasks`,
    ...(progress.running > 0 ? [`${progress.running} running`] : []),
    ...(progress.waiting > 0 ? [`${progress.waiting} waiting`] : []),
    ...(progress.failed > 0 ? [paint.red(`${progress.failed} failed`)] : []),
    ...(progress.blocked > 0 ? [paint.yellow(`${progress.blocked} blocked`)] : []),
  ];
  const times = [
    ...(view.elapsedMs === undefined ? [] : [`${toDurationText(view.elapsedMs)} in all`]),
    ...(view.remainingMs === undefined ? [] : [`about ${toDurationText(view.remainingMs)} left`]),
  ];
  const planning = view.planning === undefined ? '' : ` (${toPrice(view.planning)} for planning)`;
  const costs = view.agent === undefined ? [] : [`${toCostText(view.agent)}${planning}`];
  const facts = [
    paint[RUN_COLOURS[view.runState]](view.runState),
    ...(view.mode === undefined ? [] : [`mode ${oneLine(view.mode)}`]),
    ...(orchestrator === undefined ? [] : [`process ${orchestrator.pid}`]),
    ...times,
    ...costs,
    ...(view.worktreeBytes === undefined
      ? []
      : [`worktrees up to ${toSizeText(view.worktreeBytes)}, ${oneLine(view.worktreeBound ?? '')}`]),
  ];
  return [
    `${paint.bold(oneLine(view.feature))}  ${facts.join(', ')}`,
    `${paint.green('█'.repeat(full))}${paint.dim('░'.repeat(BAR_WIDTH - full))} ${Math.floor(share * 100)} %  ${counts.join(', ')}`,
  ];
}

const RUN_COLOURS = {
  running: 'green',
  complete: 'green',
  failed: 'red',
  stopping: 'yellow',
  paused: 'yellow',
  stopped: 'yellow',
} as const satisfies Record<StatusView['runState'], keyof Paints>;

export function renderLevels(levels: readonly LevelView[], paint: Paints): string[] {
  if (levels.length === 0) return [];
  const isPriced = levels.some(({ agent }) => agent !== undefined);
  const rows = levels.map((level) => [
    `  ${level.level}`,
    oneLine(level.name ?? '', 30),
    paintStatus(level.status, paint),
    `${level.complete}/${level.total}`,
    ...(isPriced ? [level.agent === undefined ? '' : toPrice(level.agent)] : []),
    level.mergeStatus ?? '',
    level.mergeCommit?.slice(0, SHORT_HASH) ?? '',
  ]);
  return toLines([
    ['  LEVEL', 'NAME', 'STATUS', 'TASKS', ...(isPriced ? ['COST'] : []), 'MERGE', 'COMMIT'],
    ...rows,
  ]);
}

export function renderWorkers(workers: readonly WorkerView[], paint: Paints): string[] {
  if (workers.length === 0) return [];
  const areHeard = workers.some(({ activity }) => activity !== undefined);
  const rows = workers.map((worker) => [
    `  ${worker.worker}`,
    paintStatus(worker.status, paint),
    oneLine(worker.task ?? ''),
    worker.busyMs === undefined ? '' : toDurationText(worker.busyMs),
    String(worker.completed),
    worker.restarts > 0 ? String(worker.restarts) : '',
    oneLine(worker.cell ?? ''),
    ...(areHeard ? [oneLine(worker.activity ?? '')] : []),
  ]);
  const heading = ['  WORKER', 'STATUS', 'TASK', 'SINCE', 'DONE', 'RESTARTS', 'CELL'];
  return toLines([areHeard ? [...heading, 'DOES'] : heading, ...rows]);
}

export function renderTasks(tasks: readonly TaskView[], paint: Paints): string[] {
  if (tasks.length === 0) return [];
  const figures = toFigureColumns(tasks);
  const rows = tasks.map((task) => [
    `  ${oneLine(task.id)}`,
    task.level === undefined ? '' : String(task.level),
    paintStatus(task.status, paint),
    task.worker === undefined ? '' : String(task.worker),
    task.attempts > 1 ? String(task.attempts) : '',
    timeOf(task),
    ...figures.of(task),
    oneLine(task.title),
  ]);
  const heading = ['  TASK', 'LEVEL', 'STATUS', 'WORKER', 'ATTEMPTS', 'TIME', ...figures.heading, 'TITLE'];
  return toLines([heading, ...rows]);
}

function timeOf({ durationMs, retryInMs }: TaskView): string {
  if (retryInMs !== undefined) return `again in ${toDurationText(retryInMs)}`;
  return durationMs === undefined ? '' : toDurationText(durationMs);
}

export function renderCommits(tasks: readonly TaskView[]): string[] {
  const rows = tasks
    .filter(({ status, commit }) => status === 'complete' && commit !== undefined)
    .map((task) => [
      `  ${oneLine(task.commit ?? '').slice(0, 2 * SHORT_HASH)}`,
      oneLine(task.id),
      task.worker === undefined ? '' : String(task.worker),
      task.changedFiles === undefined ? '' : String(task.changedFiles),
      oneLine(task.title),
    ]);
  return rows.length === 0
    ? ['  no task is committed yet']
    : toLines([['  COMMIT', 'TASK', 'WORKER', 'FILES', 'TITLE'], ...rows]);
}

export function renderAttention(attention: StatusView['attention'], paint: Paints): string[] {
  return attention.flatMap(({ kind, text, instructions }) => [
    `${['stopped', 'worker', 'dependencies'].includes(kind) ? paint.yellow('!') : paint.red('✗')} ${oneLine(text, 400)}`,
    ...instructions.map((line) => `    → ${oneLine(line, 400)}`),
  ]);
}

const COLOURS: ReadonlyMap<string, 'green' | 'red' | 'yellow' | 'dim'> = new Map([
  ...['complete', 'ready'].map((status) => [status, 'green'] as const),
  ...['failed', 'conflict', 'crashed', 'stalled', 'gone'].map((status) => [status, 'red'] as const),
  ...['blocked', 'paused', 'waiting_retry', 'stopping'].map((status) => [status, 'yellow'] as const),
  ...['pending', 'todo', 'idle', 'stopped'].map((status) => [status, 'dim'] as const),
]);

/** Of tasks, workers and levels. */
export function paintStatus(status: string, paint: Paints): string {
  const text = oneLine(status);
  const colour = COLOURS.get(status);
  return colour === undefined ? text : paint[colour](text);
}

function toLines(rows: readonly (readonly string[])[]): string[] {
  return renderTable(rows).split('\n');
}
