import type { Config } from '../app/config/config.ts';
import type { Log } from '../core/log.ts';
import { toPrintable } from '../lib/printable.ts';
import type { Terminal } from './terminal.ts';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** A log for people, on stderr. */
export function makeTerminalLog(least: Config['logLevel'], terminal: Terminal): Log {
  const at = (level: (typeof LEVELS)[number]): Log[typeof level] => {
    const isShown = least !== 'silent' && LEVELS.indexOf(level) >= LEVELS.indexOf(least);
    return (fields, message) => {
      if (!isShown) return;
      const words = ['hotcell:', ...(level === 'info' ? [] : [`${level}:`]), message, ...toWords(fields)];
      // SECURITY: some of it was chosen by clients and programs.
      terminal.note(toPrintable(words.join(' ')));
    };
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** As `name=value`, with quotes only where a value is more than one word. */
function toWords(fields: Record<string, unknown>): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const isWord = typeof value === 'string' && /^[^\s"=]+$/.test(value);
    return [`${name}=${isWord ? value : JSON.stringify(value)}`];
  });
}
