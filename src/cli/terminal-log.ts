import type { Config } from '../app/config.ts';
import type { Log } from '../core/log.ts';
import type { Terminal } from './terminal.ts';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** A log for people, on stderr. */
export function makeTerminalLog(least: Config['logLevel'], terminal: Terminal): Log {
  const at = (level: (typeof LEVELS)[number]): Log[typeof level] => {
    const isShown = least !== 'silent' && LEVELS.indexOf(level) >= LEVELS.indexOf(least);
    return (fields, message) => {
      if (isShown) terminal.note(`hotcell: ${level}: ${message} ${JSON.stringify(fields)}`);
    };
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
