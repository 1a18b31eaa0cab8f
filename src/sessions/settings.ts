import * as z from 'zod';
import { LONGEST_TIME_MS } from '../core/limits.ts';
import { HostPattern } from '../core/host-pattern.ts';
import { LONGEST_TIMEOUT_S } from '../core/session-words.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;
const minutes = (count: number): number => count * 60_000;
const time = (): z.ZodInt => z.int().min(10).max(LONGEST_TIME_MS);

/** Every setting of sessions, once; a part of the server's configuration. */
export const SessionSettings = z.strictObject({
  dir: z.string().min(1).optional().describe('where sessions and their output are kept; of one server only'),
  max: z.int().min(1).max(100_000).default(256).describe('sessions at once, all tenants together'),
  limits: z
    .strictObject({
      cpus: z.number().positive().max(1024).default(1).describe('CPU cores, fractions allowed'),
      memoryBytes: z
        .int()
        .min(16 * MiB)
        .default(2 * GiB)
        .describe('memory of all its processes'),
      diskBytes: z
        .int()
        .min(8 * MiB)
        .default(512 * MiB)
        .describe('size of the workspace and /tmp together'),
      processes: z.int().min(8).max(1_000_000).default(64).describe('processes and threads at once'),
      openFiles: z.int().min(16).max(1_048_576).default(4096).describe('open files per process'),
    })
    .prefault({})
    .describe('what a session may use unless it asks for something else'),
  ceilings: z
    .strictObject({
      cpus: z.number().positive().max(1024).default(4).describe('most that cpus may ask for'),
      memoryBytes: z
        .int()
        .min(16 * MiB)
        .default(8 * GiB)
        .describe('most that memory_mb may ask for'),
      diskBytes: z
        .int()
        .min(8 * MiB)
        .default(8 * GiB)
        .describe('most that disk_mb may ask for'),
      processes: z.int().min(8).max(1_000_000).default(1024).describe('most that processes may ask for'),
      ttlMs: time()
        .default(minutes(24 * 60))
        .describe('most that ttl_s may ask for'),
      timeoutMs: z
        .int()
        .min(10)
        .max(LONGEST_TIMEOUT_S * 1000)
        .default(minutes(24 * 60))
        .describe('most that timeout_s may ask for'),
    })
    .prefault({})
    .describe('how far a session may raise its own limits'),
  ttlMs: time().default(minutes(30)).describe('time without a request after which a session ends'),
  sweepMs: time().default(5_000).describe('how often that is checked'),
  timeoutMs: time().default(minutes(10)).describe('time until a command is asked to end'),
  graceMs: z
    .int()
    .min(0)
    .max(minutes(10))
    .default(5_000)
    .describe('time between SIGTERM and SIGKILL after that'),
  onStop: z
    .enum(['keep', 'end'])
    .default('keep')
    .describe('whether sessions go on without the server when it stops in order, or end with it'),
  abandonedMs: time()
    .default(minutes(10))
    .describe('time after its end that a cell waits for a server, before it ends by itself'),
  queue: z.int().min(0).max(10_000).default(64).describe('commands that may wait in one session'),
  beside: z
    .int()
    .min(1)
    .max(10_000)
    .default(32)
    .describe('background commands and terminals at once in one session'),
  output: z
    .strictObject({
      headBytes: z
        .int()
        .min(64 * KiB)
        .default(MiB)
        .describe('disk space for the beginning of the output of a command'),
      tailBytes: z
        .int()
        .min(64 * KiB)
        .default(15 * MiB)
        .describe('disk space for the end of it; what is between is cut when it does not fit'),
      replyBytes: z
        .int()
        .min(4 * KiB)
        .max(64 * MiB)
        .default(MiB)
        .describe('output in the reply of a command'),
      sessionBytes: z
        .int()
        .min(MiB)
        .default(64 * MiB)
        .describe('disk space for the output of all ended commands of a session'),
    })
    .prefault({})
    .describe('how much output is kept'),
  network: z
    .array(HostPattern)
    .default(['npm', 'pypi', 'github'])
    .describe('hosts and presets that "network": true stands for'),
  readBytes: z
    .int()
    .min(KiB)
    .max(256 * MiB)
    .default(8 * MiB)
    .describe('largest file that is read in one reply'),
  execsKept: z.int().min(1).max(10_000).default(200).describe('ended commands that a session remembers'),
  endedMs: time()
    .default(minutes(24 * 60))
    .describe('how long it is remembered why a session ended'),
  endedMax: z.int().min(0).max(1_000_000).default(10_000).describe('ended sessions that are remembered'),
  adopting: z
    .int()
    .min(1)
    .max(256)
    .default(16)
    .describe('sessions that are taken over at once after a restart'),
});
export type SessionSettings = z.infer<typeof SessionSettings>;

export const DEFAULT_SESSION_SETTINGS: SessionSettings = SessionSettings.parse({});
