import * as z from 'zod';
import { time, whole } from './setting-values.ts';

const MiB = 1024 * 1024;

/** What one cell may use. Names, units and defaults of limits stand here and nowhere else. */
export const Limits = z.strictObject({
  cpus: z.number().positive().max(1024).default(0.5).describe('CPU cores, fractions allowed'),
  memoryBytes: whole(256 * MiB, { min: 8 * MiB }).describe('memory of all processes and of /tmp together'),
  processes: whole(64, { min: 4, max: 1_000_000 }).describe('processes and threads at once'),
  diskBytes: whole(64 * MiB, { min: MiB }).describe('size of /tmp, the only writable place'),
  openFiles: whole(1024, { min: 16, max: 1_048_576 }).describe('open files per process'),
  wallTimeMs: time(10_000).describe('time until the whole process tree is killed'),
  outputBytes: whole(16 * MiB, { min: 1024 }).describe('bytes of output after which the program is killed'),
});
export type Limits = z.infer<typeof Limits>;
export type LimitName = keyof Limits;
export const LIMIT_NAMES = Limits.keyof().options;

export const DEFAULT_LIMITS: Limits = Limits.parse({});
