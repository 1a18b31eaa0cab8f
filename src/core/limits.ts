import * as z from 'zod';

const MiB = 1024 * 1024;

/** Timers of Node cannot wait longer. */
export const LONGEST_TIME_MS = 2 ** 31 - 1;

/** What one cell may use. Names, units and defaults of limits stand here and nowhere else. */
export const Limits = z.strictObject({
  cpus: z.number().positive().max(1024).default(0.5).describe('CPU cores, fractions allowed'),
  memoryBytes: z
    .int()
    .min(8 * MiB)
    .default(256 * MiB)
    .describe('memory of all processes and of /tmp together'),
  processes: z.int().min(4).max(1_000_000).default(64).describe('processes and threads at once'),
  diskBytes: z
    .int()
    .min(MiB)
    .default(64 * MiB)
    .describe('size of /tmp, the only writable place'),
  openFiles: z.int().min(16).max(1_048_576).default(1024).describe('open files per process'),
  wallTimeMs: z
    .int()
    .min(10)
    .max(LONGEST_TIME_MS)
    .default(10_000)
    .describe('time until the whole process tree is killed'),
  outputBytes: z
    .int()
    .min(1024)
    .default(16 * MiB)
    .describe('bytes of output after which the program is killed'),
});
export type Limits = z.infer<typeof Limits>;
export type LimitName = keyof Limits;
export const LIMIT_NAMES = Limits.keyof().options;

export const DEFAULT_LIMITS: Limits = Limits.parse({});
