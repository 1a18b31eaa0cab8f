import * as z from 'zod';
import { LONGEST_TIME_MS } from '../core/limits.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const minutes = (count: number): number => count * 60_000;
const time = (): z.ZodInt => z.int().min(10).max(LONGEST_TIME_MS);

/** Every setting of workbenches, once; a part of the server's configuration. */
export const WorkbenchSettings = z.strictObject({
  limits: z
    .strictObject({
      cpus: z.number().positive().max(1024).default(2).describe('CPU cores, fractions allowed'),
      memoryBytes: z
        .int()
        .min(64 * MiB)
        .default(512 * MiB)
        .describe('memory of all its processes and of its files together'),
      processes: z.int().min(16).max(1_000_000).default(128).describe('processes and threads at once'),
      diskBytes: z
        .int()
        .min(8 * MiB)
        .default(256 * MiB)
        .describe('size of its files'),
      openFiles: z.int().min(16).max(1_048_576).default(1024).describe('open files per process'),
      wallTimeMs: time().default(30_000).describe('time until the code is killed'),
      outputBytes: z
        .int()
        .min(KiB)
        .default(16 * MiB)
        .describe('bytes of output after which the code is killed'),
    })
    .prefault({})
    .describe('what the code of one session may use'),
  longestTimeMs: time().default(minutes(10)).describe('most that timeout_ms may ask for'),
  idleMs: time().default(minutes(30)).describe('time without a call after which a session ends'),
  warmMs: z
    .int()
    .min(0)
    .max(LONGEST_TIME_MS)
    .default(minutes(5))
    .describe('how long a process waits for the next run of a session; 0: none does'),
  sweepMs: time().default(5_000).describe('how often that is checked'),
  max: z.int().min(1).max(100_000).default(64).describe('sessions at once, all tenants together'),
  maxPerTenant: z.int().min(1).max(100_000).default(16).describe('sessions at once of one tenant'),
  queue: z.int().min(0).max(1000).default(16).describe('runs that may wait in one session'),
  runsKept: z.int().min(1).max(1000).default(50).describe('ended runs that a session remembers'),
  outputKeptBytes: z
    .int()
    .min(KiB)
    .max(16 * MiB)
    .default(64 * KiB)
    .describe('bytes of each output stream that are kept: the beginning and the end'),
  readBytes: z
    .int()
    .min(KiB)
    .max(64 * MiB)
    .default(8 * MiB)
    .describe('largest file that is read'),
  permissions: z.int().min(0).max(10_000).default(64).describe('permissions that a session may have'),
  grantable: z
    .strictObject({
      http: z
        .array(z.string().min(1))
        .default(['*'])
        .describe('hosts that may be granted: example.org, *.example.org, or * for all public ones'),
      file: z
        .array(z.string().startsWith('/'))
        .default([])
        .describe(
          'folders of this machine that may be granted, with everything below them; preload mode only',
        ),
      env: z
        .array(z.string().min(1))
        .default([])
        .describe('names of variables that may be granted; * stands for anything'),
    })
    .prefault({})
    .describe('what permissions may be granted at all'),
  snippets: z
    .strictObject({
      max: z.int().min(0).max(100_000).default(500).describe('snippets of one tenant'),
      bytes: z
        .int()
        .min(KiB)
        .max(16 * MiB)
        .default(256 * KiB)
        .describe('largest snippet'),
    })
    .prefault({})
    .describe('code that is kept under a name'),
});
export type WorkbenchSettings = z.infer<typeof WorkbenchSettings>;

export const DEFAULT_WORKBENCH_SETTINGS: WorkbenchSettings = WorkbenchSettings.parse({});
