import { styleText } from 'node:util';
import type { LogLine } from '../../fleet/logs/log-line.ts';
import { toPrintable } from '../render/printable.ts';
import type { Terminal } from '../terminal.ts';
import { oneLine } from './one-line.ts';

const COLOURS = [
  'cyan',
  'magenta',
  'blue',
  'green',
  'yellow',
  'cyanBright',
  'magentaBright',
  'blueBright',
] as const;

const LONGEST_FIELD = 500;

/** `12:00:03 worker 2  warn   A-1 verify  message field=value`, coloured by worker. */
export function renderLogLine(line: LogLine, terminal: Terminal): string {
  const { paint } = terminal;
  const worker = Number(line.worker_id ?? NaN);
  const colour = COLOURS[worker % COLOURS.length];
  const who = typeof line.worker_id === 'string' ? line.worker_id : `worker ${line.worker_id ?? '?'}`;
  const name = oneLine(who).padEnd(9);
  const shownName = colour === undefined ? name : styleText(colour, name, { stream: terminal.stdout });
  const level = oneLine(line.level.toLowerCase()).padEnd(5);
  const place = [line.task_id, line.phase].flatMap((part) => (part ? [oneLine(part)] : [])).join(' ');
  const took = typeof line.duration_ms === 'number' ? paint.dim(` (${line.duration_ms} ms)`) : '';
  // SECURITY: one line stays one line, or a message could look like those of other workers.
  const message = toPrintable(line.message.replaceAll(/\r?\n/g, '\\n'));
  return [
    paint.dim(oneLine(shortTime(line.ts))),
    shownName,
    paintLevel(level, paint),
    ...(place === '' ? [] : [paint.bold(place)]),
    `${message}${describeData(line.data ?? {}, paint)}${took}`,
  ].join(' ');
}

/** SECURITY: names and values may be those of others, and stay on this line. */
function describeData(data: Record<string, unknown>, paint: Terminal['paint']): string {
  const fields = Object.entries(data).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return ` ${paint.dim(`${oneLine(name)}=`)}${oneLine(text, LONGEST_FIELD)}`;
  });
  return fields.join('');
}

function shortTime(ts: string): string {
  return /T(\d\d:\d\d:\d\d)/.exec(ts)?.[1] ?? ts;
}

function paintLevel(level: string, paint: Terminal['paint']): string {
  if (/^(error|critical)/.test(level)) return paint.red(level);
  return level.startsWith('warn') ? paint.yellow(level) : paint.dim(level);
}
