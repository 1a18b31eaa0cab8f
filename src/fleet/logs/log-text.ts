import { oneLine } from '../../lib/one-line.ts';
import { toPrintable } from '../../lib/printable.ts';
import type { LogLine } from './log-line.ts';

type Paint = (text: string) => string;

/** How the parts of a line are shown. */
export interface LogPaint {
  readonly time: Paint;
  worker(text: string, number: number): string;
  level(text: string, level: string): string;
  readonly place: Paint;
}

const LONGEST_FIELD = 500;

const PLAIN: LogPaint = {
  time: (text) => text,
  worker: (text) => text,
  level: (text) => text,
  place: (text) => text,
};

/** `12:00:03 worker 2  warn   A-1 verify  message field=value`. */
export function toLogText(line: LogLine, paint: LogPaint = PLAIN): string {
  const who = typeof line.worker_id === 'string' ? line.worker_id : `worker ${line.worker_id ?? '?'}`;
  const level = oneLine(line.level.toLowerCase());
  const place = [line.task_id, line.phase].flatMap((part) => (part ? [oneLine(part)] : [])).join(' ');
  const took = typeof line.duration_ms === 'number' ? paint.time(` (${line.duration_ms} ms)`) : '';
  // SECURITY: one line stays one line, or a message could look like those of other workers.
  const message = toPrintable(line.message.replaceAll(/\r?\n/g, '\\n'));
  return [
    paint.time(oneLine(shortTime(line.ts))),
    paint.worker(oneLine(who).padEnd(9), Number(line.worker_id ?? NaN)),
    paint.level(level.padEnd(5), level),
    ...(place === '' ? [] : [paint.place(place)]),
    `${message}${describeData(line.data ?? {}, paint)}${took}`,
  ].join(' ');
}

/** SECURITY: names and values may be those of others, and stay on this line. */
function describeData(data: Record<string, unknown>, paint: LogPaint): string {
  const fields = Object.entries(data).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return ` ${paint.time(`${oneLine(name)}=`)}${oneLine(text, LONGEST_FIELD)}`;
  });
  return fields.join('');
}

function shortTime(ts: string): string {
  return /T(\d\d:\d\d:\d\d)/.exec(ts)?.[1] ?? ts;
}
