import * as z from 'zod';
import { choice, whole } from '../core/setting-values.ts';
import { FLEET_MODES } from './fleet-site.ts';

/** Without it in the file, all of its defaults. */
const section = <Shape extends z.core.$ZodLooseShape>(shape: Shape) =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- TypeScript cannot tell that every key has one.
  z.looseObject(shape).prefault({} as never);
const seconds = (fallback: number) => z.number().min(0).max(1_000_000).default(fallback);

const QualityCheck = z.looseObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'letters, digits, dot, - and _, at most 64'),
  command: z.string().min(1).describe('run by `bash -c` in a cell of its own, on what was merged'),
  required: z.boolean().default(false).describe('a level that does not pass it ends the run'),
  timeout: seconds(300).describe('in seconds'),
});
export type QualityCheck = z.infer<typeof QualityCheck>;

const SIZE = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i;
const UNITS: Readonly<Record<string, number>> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

/** As Docker writes sizes: `4g`, `512m`. */
const size = (fallback: string) =>
  z
    .union([z.string(), z.number()])
    .transform((text, context) => {
      const [, count, unit = ''] = SIZE.exec(String(text).trim()) ?? [];
      const bytes = Math.round(Number(count) * (UNITS[unit.toLowerCase()] ?? 1));
      if (count !== undefined && bytes >= 64 * 1024 ** 2) return bytes;
      context.addIssue({ code: 'custom', message: 'must be a size such as 4g or 512m, at least 64m' });
      return z.NEVER;
    })
    .prefault(fallback);

/** Where programs of the agent may go: hosts, `*.` patterns and the presets npm, pypi and github. */
const AllowedHosts = z.array(z.string().min(1)).default(['api.anthropic.com', 'npm', 'pypi']);

/**
 * `.mahabharatha/config.yaml`. Keys of other programs that mean nothing here are accepted and named in a warning
 * (`unknownKeys`), so that existing files work.
 */
export const FleetConfig = z.looseObject({
  workers: section({
    max_concurrent: whole(5, { min: 1, max: 64 }).describe('workers unless --workers says otherwise'),
    launcher_type: choice('auto', [...FLEET_MODES, 'auto']).describe('as --mode'),
    driver: z
      .string()
      .default('auto')
      .describe(
        'what makes the cells of mode container, as --driver; auto: from the image where engine and image are there, else without one',
      ),
    timeout_minutes: z
      .number()
      .positive()
      .max(24 * 60)
      .default(30)
      .describe('longest time of one attempt at a task'),
    retry_attempts: whole(3, { min: 0, max: 100 }).describe('attempts after the first one'),
    backoff_strategy: choice('exponential', ['exponential', 'linear', 'fixed']),
    backoff_base_seconds: seconds(30),
    backoff_max_seconds: seconds(300),
    spawn_retry_attempts: whole(3, { min: 0, max: 100 }).describe(
      'attempts to start a cell, after the first one',
    ),
    spawn_backoff_base_seconds: seconds(2),
    spawn_backoff_max_seconds: seconds(30),
    max_respawn_attempts: whole(5, { min: 0, max: 1000 }).describe(
      'new cells for a worker whose cell was lost',
    ),
  }),
  heartbeat: section({
    interval_seconds: z
      .number()
      .positive()
      .max(3600)
      .default(15)
      .describe('between two signs of life of a cell'),
    stall_timeout_seconds: z
      .number()
      .positive()
      .max(86_400)
      .default(120)
      .describe('silence after which a worker is taken for crashed'),
  }),
  agent: section({
    command: z.string().min(1).default('claude'),
    args: z.array(z.string()).default(['--print', '--dangerously-skip-permissions']),
    prompt: choice('stdin', ['stdin', 'arg']).describe(
      'how the agent gets its task: on stdin, or as last argument',
    ),
    env: z.record(z.string(), z.string()).default({}).describe('variables for the agent alone'),
    output: choice('auto', ['auto', 'text', 'stream-json']).describe(
      'what it prints; auto: Claude Code is asked for stream-json, so that one sees what it does and costs',
    ),
    max_cost_usd: z.number().positive().optional().describe('of one task, all its attempts together'),
    max_turns: z.int().positive().optional().describe('of one task, all its attempts together'),
  }),
  network: section({
    allow: AllowedHosts.describe('hosts that the cells may reach, through the gate; empty for none'),
  }),
  credentials: section({
    api_key: choice('agent', ['agent', 'gate', 'none']).describe(
      'agent: the agent gets it; gate: only the gate knows it and adds it to requests for api_host; none',
    ),
    api_key_variable: z
      .string()
      .regex(/^[A-Z][A-Z0-9_]*$/)
      .default('ANTHROPIC_API_KEY'),
    api_host: z.string().default('api.anthropic.com'),
    api_header: z
      .string()
      .regex(/^[a-z][a-z0-9-]*$/)
      .default('x-api-key'),
    base_url_variable: z
      .string()
      .regex(/^[A-Z][A-Z0-9_]*$/)
      .default('ANTHROPIC_BASE_URL'),
    oauth: z
      .boolean()
      .default(false)
      .describe(
        'the agent signs in as the user: with CLAUDE_CODE_OAUTH_TOKEN, or with the access token of ~/.claude/.credentials.json',
      ),
  }),
  environment: section({
    allow: z.array(z.string()).default([]).describe('further variables that workers get, by name or with *'),
  }),
  worktree: section({
    copy: z
      .array(z.string())
      .default(['.env', '.env.local'])
      .describe('ignored files that every worktree gets a copy of, by pattern'),
    setup: choice('auto', ['auto', 'none']).describe(
      'auto: install dependencies of npm and pip, once per manifest',
    ),
    setup_command: z.string().optional().describe('instead of what auto finds'),
  }),
  quality_gates: z.array(QualityCheck).default([]),
  resources: section({
    container_memory_limit: size('4g'),
    container_cpu_limit: z.number().positive().max(1024).default(2),
    container_processes: whole(1024, { min: 16, max: 100_000 }),
    container_open_files: whole(4096, { min: 64, max: 1_048_576 }),
    container_tmp: size('4g').describe('size of /tmp, which is in memory'),
    worktree_disk: size('10g').describe(
      'most that a worktree may take on the disk, and as root the room that is kept for it; beyond it its task fails',
    ),
  }),
  logging: section({
    level: choice('info', ['debug', 'info', 'warn', 'error']),
    ephemeral_retain_on_success: z
      .boolean()
      .default(true)
      .describe('keep the artifacts of tasks that are complete'),
    max_log_size_mb: z.number().positive().default(50),
  }),
  ports: section({
    range_start: whole(49_152, { min: 1024, max: 65_535 }),
    range_end: whole(65_535, { min: 1024, max: 65_535 }),
  }),
  ownership: choice('warn', ['enforce', 'warn', 'off']).describe(
    'what happens when a task changes files that it does not own',
  ),
});
export type FleetConfig = z.infer<typeof FleetConfig>;
