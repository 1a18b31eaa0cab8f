import { isAtLeast, type LogLevel, type LogLine } from './log-line.ts';

/** What is asked for; everything given must hold. */
export interface LogFilter {
  readonly feature?: string | undefined;
  readonly level?: LogLevel | undefined;
  readonly task?: string | undefined;
  readonly phase?: string | undefined;
  readonly event?: string | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** In the message or the data, whatever the case of its letters. */
  readonly search?: string | undefined;
}

export function matchesFilter(line: LogLine, filter: LogFilter): boolean {
  return (
    isSame(line.feature ?? undefined, filter.feature, true) &&
    (filter.level === undefined || isAtLeast(line.level, filter.level)) &&
    isSame(line.task_id ?? undefined, filter.task) &&
    isSame(line.phase ?? undefined, filter.phase) &&
    isSame(line.event ?? undefined, filter.event) &&
    isWithin(timeOf(line), filter) &&
    (filter.search === undefined || textOf(line).includes(filter.search.toLowerCase()))
  );
}

function isSame(value: string | undefined, wanted: string | undefined, mayLack = false): boolean {
  return wanted === undefined || value === wanted || (mayLack && value === undefined);
}

function isWithin(time: number, { since, until }: LogFilter): boolean {
  return (since === undefined || time >= since.getTime()) && (until === undefined || time <= until.getTime());
}

function textOf({ message, event, data, task_id }: LogLine): string {
  return `${message}\n${event ?? ''}\n${task_id ?? ''}\n${data ? JSON.stringify(data) : ''}`.toLowerCase();
}

/** Milliseconds since 1970; 0 for a time that cannot be read. */
export function timeOf({ ts }: LogLine): number {
  const time = Date.parse(ts);
  return Number.isNaN(time) ? 0 : time;
}
