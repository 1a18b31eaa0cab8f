import { pino } from 'pino';
import type { Log } from '../core/log.ts';
import type { Config } from './config/config.ts';

/** One JSON object a line on stderr, so that stdout stays free for what people and scripts read. */
export function makeLog(level: Config['logLevel']): Log {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: false }),
  );
}
