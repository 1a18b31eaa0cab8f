import * as z from 'zod';
import { group, minutes, time, whole } from '../core/setting-values.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

/** Every setting of workbenches, once; a part of the server's configuration. */
export const WorkbenchSettings = z.strictObject({
  limits: group('what the code of one session may use', {
    cpus: z.number().positive().max(1024).default(2).describe('CPU cores, fractions allowed'),
    memoryBytes: whole(512 * MiB, { min: 64 * MiB }).describe(
      'memory of all its processes and of its files together',
    ),
    processes: whole(128, { min: 16, max: 1_000_000 }).describe('processes and threads at once'),
    diskBytes: whole(256 * MiB, { min: 8 * MiB }).describe('size of its files'),
    openFiles: whole(1024, { min: 16, max: 1_048_576 }).describe('open files per process'),
    wallTimeMs: time(30_000).describe('time until the code is killed'),
    outputBytes: whole(16 * MiB, { min: KiB }).describe('bytes of output after which the code is killed'),
  }),
  longestTimeMs: time(minutes(10)).describe('most that timeout_ms may ask for'),
  idleMs: time(minutes(30)).describe('time without a call after which a session ends'),
  warmMs: time(minutes(5), { min: 0 }).describe(
    'how long a process waits for the next run of a session; 0: none does',
  ),
  sweepMs: time(5_000).describe('how often that is checked'),
  max: whole(64, { min: 1, max: 100_000 }).describe('sessions at once, all tenants together'),
  maxPerTenant: whole(16, { min: 1, max: 100_000 }).describe('sessions at once of one tenant'),
  queue: whole(16, { min: 0, max: 1000 }).describe('runs that may wait in one session'),
  runsKept: whole(50, { min: 1, max: 1000 }).describe('ended runs that a session remembers'),
  outputKeptBytes: whole(64 * KiB, { min: KiB, max: 16 * MiB }).describe(
    'bytes of each output stream that are kept: the beginning and the end',
  ),
  readBytes: whole(8 * MiB, { min: KiB, max: 64 * MiB }).describe('largest file that is read'),
  permissions: whole(64, { min: 0, max: 10_000 }).describe('permissions that a session may have'),
  grantable: group('what permissions may be granted at all', {
    http: z
      .array(z.string().min(1))
      .default(['*'])
      .describe('hosts that may be granted: example.org, *.example.org, or * for all public ones'),
    file: z
      .array(z.string().startsWith('/'))
      .default([])
      .describe('folders of this machine that may be granted, with everything below them; preload mode only'),
    env: z
      .array(z.string().min(1))
      .default([])
      .describe('names of variables that may be granted; * stands for anything'),
  }),
  snippets: group('code that is kept under a name', {
    max: whole(500, { min: 0, max: 100_000 }).describe('snippets of one tenant'),
    bytes: whole(256 * KiB, { min: KiB, max: 16 * MiB }).describe('largest snippet'),
  }),
});
export type WorkbenchSettings = z.infer<typeof WorkbenchSettings>;

export const DEFAULT_WORKBENCH_SETTINGS: WorkbenchSettings = WorkbenchSettings.parse({});
