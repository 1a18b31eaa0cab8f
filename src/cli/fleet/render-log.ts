import { styleText } from 'node:util';
import type { LogLine } from '../../fleet/logs/log-line.ts';
import { toLogText } from '../../fleet/logs/log-text.ts';
import type { Terminal } from '../terminal.ts';

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

/** Coloured by worker. */
export function renderLogLine(line: LogLine, { paint, stdout }: Terminal): string {
  return toLogText(line, {
    time: paint.dim,
    place: paint.bold,
    worker: (text, number) => {
      const colour = COLOURS[number % COLOURS.length];
      return colour === undefined ? text : styleText(colour, text, { stream: stdout });
    },
    level: (text, level) => {
      if (/^(error|critical)/.test(level)) return paint.red(text);
      return level.startsWith('warn') ? paint.yellow(text) : paint.dim(text);
    },
  });
}
