import * as z from 'zod';
import { HostPattern } from '../core/host-pattern.ts';
import { LONGEST_TIMEOUT_S } from '../core/session-words.ts';
import { choice, group, minutes, time, whole } from '../core/setting-values.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/** Every setting of sessions, once; a part of the server's configuration. */
export const SessionSettings = z.strictObject({
  dir: z.string().min(1).optional().describe('where sessions and their output are kept; of one server only'),
  max: whole(256, { min: 1, max: 100_000 }).describe('sessions at once, all tenants together'),
  limits: group('what a session may use unless it asks for something else', {
    cpus: z.number().positive().max(1024).default(1).describe('CPU cores, fractions allowed'),
    memoryBytes: whole(2 * GiB, { min: 16 * MiB }).describe('memory of all its processes'),
    diskBytes: whole(512 * MiB, { min: 8 * MiB }).describe('size of the workspace and /tmp together'),
    processes: whole(64, { min: 8, max: 1_000_000 }).describe('processes and threads at once'),
    openFiles: whole(4096, { min: 16, max: 1_048_576 }).describe('open files per process'),
  }),
  ceilings: group('how far a session may raise its own limits', {
    cpus: z.number().positive().max(1024).default(4).describe('most that cpus may ask for'),
    memoryBytes: whole(8 * GiB, { min: 16 * MiB }).describe('most that memory_mb may ask for'),
    diskBytes: whole(8 * GiB, { min: 8 * MiB }).describe('most that disk_mb may ask for'),
    processes: whole(1024, { min: 8, max: 1_000_000 }).describe('most that processes may ask for'),
    ttlMs: time(minutes(24 * 60)).describe('most that ttl_s may ask for'),
    timeoutMs: whole(minutes(24 * 60), { min: 10, max: LONGEST_TIMEOUT_S * 1000 }).describe(
      'most that timeout_s may ask for',
    ),
  }),
  ttlMs: time(minutes(30)).describe('time without a request after which a session ends'),
  sweepMs: time(5_000).describe('how often that is checked'),
  timeoutMs: time(minutes(10)).describe('time until a command is asked to end'),
  graceMs: whole(5_000, { min: 0, max: minutes(10) }).describe('time between SIGTERM and SIGKILL after that'),
  onStop: choice('keep', ['keep', 'end']).describe(
    'whether sessions go on without the server when it stops in order, or end with it',
  ),
  abandonedMs: time(minutes(10)).describe(
    'time after its end that a cell waits for a server, before it ends by itself',
  ),
  queue: whole(64, { min: 0, max: 10_000 }).describe('commands that may wait in one session'),
  beside: whole(32, { min: 1, max: 10_000 }).describe(
    'background commands and terminals at once in one session',
  ),
  output: group('how much output is kept', {
    headBytes: whole(MiB, { min: 64 * KiB }).describe(
      'disk space for the beginning of the output of a command',
    ),
    tailBytes: whole(15 * MiB, { min: 64 * KiB }).describe(
      'disk space for the end of it; what is between is cut when it does not fit',
    ),
    replyBytes: whole(MiB, { min: 4 * KiB, max: 64 * MiB }).describe('output in the reply of a command'),
    sessionBytes: whole(64 * MiB, { min: MiB }).describe(
      'disk space for the output of all ended commands of a session',
    ),
  }),
  network: z
    .array(HostPattern)
    .default(['npm', 'pypi', 'github'])
    .describe('hosts and presets that "network": true stands for'),
  readBytes: whole(8 * MiB, { min: KiB, max: 256 * MiB }).describe('largest file that is read in one reply'),
  execsKept: whole(200, { min: 1, max: 10_000 }).describe('ended commands that a session remembers'),
  endedMs: time(minutes(24 * 60)).describe('how long it is remembered why a session ended'),
  endedMax: whole(10_000, { min: 0, max: 1_000_000 }).describe('ended sessions that are remembered'),
  adopting: whole(16, { min: 1, max: 256 }).describe('sessions that are taken over at once after a restart'),
});
export type SessionSettings = z.infer<typeof SessionSettings>;

export const DEFAULT_SESSION_SETTINGS: SessionSettings = SessionSettings.parse({});
