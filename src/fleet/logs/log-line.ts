import * as z from 'zod';
import { parseJson } from '../../lib/parse-json.ts';

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const LOG_PHASES = ['claim', 'execute', 'verify', 'commit', 'cleanup'] as const;
export type LogPhase = (typeof LOG_PHASES)[number];

/** One line of `worker-<n>.jsonl`. Lines of others may have levels and phases of their own. */
export const LogLine = z.looseObject({
  ts: z.string(),
  level: z.string(),
  worker_id: z.union([z.int(), z.string()]).nullish(),
  feature: z.string().nullish(),
  message: z.string(),
  task_id: z.string().nullish(),
  phase: z.string().nullish(),
  event: z.string().nullish(),
  data: z.record(z.string(), z.unknown()).nullish(),
  duration_ms: z.number().nullish(),
});
export type LogLine = z.infer<typeof LogLine>;

/** Undefined for what is no such line: half of one after a crash, or somebody else's. */
export function parseLogLine(text: string): LogLine | undefined {
  return LogLine.safeParse(parseJson(text)).data;
}

/** Levels have other names elsewhere; what nobody knows is shown. */
const RANKS: ReadonlyMap<string, number> = new Map([
  ['debug', 0],
  ['info', 1],
  ['warn', 2],
  ['warning', 2],
  ['error', 3],
  ['critical', 3],
]);

export function isAtLeast(level: string, least: LogLevel): boolean {
  return (RANKS.get(level.toLowerCase()) ?? Infinity) >= (RANKS.get(least) ?? 0);
}
