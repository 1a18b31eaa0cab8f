import { availableParallelism, totalmem } from 'node:os';
import * as z from 'zod';
import { PROMISES } from '../../core/enforcement.ts';
import { Language, LanguageName } from '../../core/language.ts';
import { Limits } from '../../core/limits.ts';
import { DRIVER_NAMES, DRIVER_SETTINGS, describeAuto, driversWith } from '../../drivers/registry.ts';
import { TenantSettings } from '../../policy/tenants.ts';
import { STRATEGIES } from '../../pool/strategy.ts';
import { McpConfig } from './mcp-config.ts';
import { PackagesConfig } from './packages-config.ts';
import { SessionConfig } from './session-config.ts';
import { choice, group, minutes, time, whole } from '../../core/setting-values.ts';

const MiB = 1024 * 1024;

/** Every setting, once: file, environment and flags are read into this. Unknown keys are refused. */
export const Config = z.strictObject({
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('address to listen on; anything but loopback needs apiKey'),
  port: whole(8000, { min: 0, max: 65_535 }).describe('port to listen on; 0 picks a free one'),
  apiKey: z.string().min(8).optional().describe('key that callers send as Authorization: Bearer'),
  allowAnonymous: z.boolean().default(false).describe('serve beyond loopback without a key'),
  corsOrigins: z.array(z.url()).default(['http://localhost:3000']).describe('web origins that may call'),
  allowedHosts: z
    .array(z.string())
    .default([])
    .describe('further host names by which the server may be called'),
  bodyLimitBytes: whole(100 * 1024, { min: 1024 }).describe('largest request body'),
  outputKeptBytes: whole(10 * 1024, { min: 256 }).describe('bytes of each output stream that a reply keeps'),
  driver: choice('auto', ['auto', ...DRIVER_NAMES]).describe(`what makes the cells; auto: ${describeAuto()}`),
  strategy: choice('auto', ['auto', ...STRATEGIES]).describe(
    `fresh: a cell for every run; shared: one cell per language; auto: shared on ${driversWith(({ sharesByDefault }) => sharesByDefault).join(' and ')}, else fresh`,
  ),
  ...DRIVER_SETTINGS,
  stateDir: z.string().optional().describe('where running cells are recorded; on tmpfs if possible'),
  weaker: z
    .array(z.enum(PROMISES))
    .default([])
    .describe('promises given up by name where nobody can keep them'),
  logLevel: choice('info', ['debug', 'info', 'warn', 'error', 'silent']).describe(
    'least level that is logged',
  ),
  logFormat: choice('auto', ['auto', 'json', 'text']).describe(
    'how `hotcell up` logs on stderr; auto: text for people on a terminal, JSON elsewhere',
  ),
  limits: Limits.prefault({}).describe('what one run may use'),
  ceilings: group('how far a request may raise its own limits', {
    wallTimeMs: time(60_000).describe('most that timeout_ms may ask for'),
    memoryBytes: whole(1024 * MiB, { min: 8 * MiB }).describe('most that memory_mb may ask for'),
  }),
  pool: group('the warm pool', {
    size: whole(4, { min: 0, max: 1000 }).describe('booted cells kept ready per language'),
    running: z
      .int()
      .min(1)
      .max(10_000)
      .default(Math.max(4, Math.min(64, Math.floor(totalmem() / 2 / (256 * MiB)))))
      .describe('runs at once, all languages together'),
    queue: whole(256, { min: 0, max: 100_000 }).describe('runs that may wait for their turn before 429'),
    nested: z
      .boolean()
      .default(false)
      .describe(
        'make the fresh cells of runs inside cells that wait, where their walls prove to stand (oci, as root)',
      ),
    nestSlots: whole(2 * availableParallelism(), { min: 1, max: 64 }).describe(
      'runs at once in one such cell',
    ),
    nestRuns: whole(2000, { min: 1, max: 20_000 }).describe('runs after which a new one takes over'),
    nestAgeMs: time(minutes(30)).describe('time after which a new one takes over'),
    booting: whole(availableParallelism(), { min: 1, max: 256 }).describe('cells that boot at the same time'),
    memoryBytes: whole(512 * MiB, { min: 0 }).describe('memory that waiting cells may hold together'),
    idleMs: time(minutes(30)).describe('idle time after which the cells of a language are removed'),
    idleCheckMs: time(minutes(5)).describe('how often that is checked'),
  }),
  tenants: TenantSettings.default({}).describe(
    'further callers by name, each with the digest of a key and with quotas',
  ),
  sessions: SessionConfig.prefault({}).describe('workspaces with a shell, at /v1/sessions'),
  packages: PackagesConfig.prefault({}).describe('packages that code imports'),
  mcp: McpConfig.prefault({}).describe('the door for AI clients: hotcell mcp, and /mcp'),
  languages: z
    .record(LanguageName, z.union([Language, z.literal(false)]))
    .default({})
    .describe('languages to add or replace; false removes a built-in one'),
});
export type Config = z.infer<typeof Config>;
