import * as z from 'zod';
import { LONGEST_TIME_MS } from '../core/setting-values.ts';
import { HostPattern } from '../core/host-pattern.ts';
import { RUNTIME_TYPES } from '../core/session-words.ts';
import { Receipt } from './execute.ts';

/** Names of projects and users end up in paths of the cell, so they have few characters. */
const Name = z
  .string()
  .regex(
    /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/,
    'has 1 to 64 letters, digits, _, - and ., and begins with neither - nor .',
  );

export const RuntimeType = z.enum(RUNTIME_TYPES);
export type RuntimeType = z.infer<typeof RuntimeType>;

/** What a session may use; at most the operator's ceilings. */
export const SessionLimits = z.strictObject({
  cpus: z.number().positive().max(1024).optional().describe('CPU cores, fractions allowed'),
  memory_mb: z.int().min(16).optional().describe('memory of all its processes in MiB'),
  disk_mb: z.int().min(8).optional().describe('size of the workspace and /tmp together in MiB'),
  processes: z.int().min(8).max(1_000_000).optional().describe('processes and threads at once'),
});

/** Body of `POST /v1/sessions`. */
export const CreateSessionRequest = z.strictObject({
  project_id: Name.describe('names the workspace and its dependency cache'),
  runtime_type: RuntimeType.describe('template: programs, default command, set-up command'),
  user_id: Name.optional().describe('whose session it is; users of a project do not share files'),
  network: z
    .union([z.boolean(), z.array(HostPattern).max(256)])
    .default(false)
    .describe("false: none; true: the operator's list; or host names and presets of your own"),
  dotenv: z.boolean().default(false).describe('load .env of the workspace into every command'),
  setup: z
    .boolean()
    .default(false)
    .describe('run the set-up command of the template before a command whenever its manifest has changed'),
  ttl_s: z
    .int()
    .min(1)
    .max(Math.floor(LONGEST_TIME_MS / 1000))
    .optional()
    .describe('seconds without a request until it ends'),
  limits: SessionLimits.prefault({}).describe("what it may use; the operator's defaults unless given"),
});
export type CreateSessionRequest = z.infer<typeof CreateSessionRequest>;

/** One session, as create, list and read show it. */
export const SessionReply = z.object({
  session_id: z.string().describe('a secret: whoever has it may use the session'),
  workspace_path: z.string().describe('/workspace/<project_id>'),
  project_id: z.string(),
  user_id: z.string().nullable(),
  runtime_type: RuntimeType,
  state: z.enum(['running', 'paused']),
  cwd: z.string().describe('where the next command begins'),
  created_at: z.string().describe('ISO 8601'),
  expires_at: z.string().describe('when it ends unless a request comes; a pause does not end the counting'),
  expires_soon: z.boolean().describe('less than a tenth of the time, or less than a minute, is left'),
  network: z.array(z.string()).describe('hosts that can be reached; empty: no network'),
  limits: SessionLimits.required(),
  workspace_storage: z
    .enum(['volume', 'memory'])
    .describe('volume: dependencies outlive the session; memory: everything goes with it'),
  default_command: z.string().describe('what this kind of project is usually run with'),
  isolation: Receipt.shape.isolation,
});
export type SessionReply = z.infer<typeof SessionReply>;

const SessionUsage = z.object({
  cpu_time_ms: z.number(),
  memory_bytes: z.int().nullable(),
  processes: z.int().nullable(),
  disk_bytes: z.int().nullable(),
  running: z.array(z.string()).describe('ids of the commands under way'),
});

export const SessionDetailReply = SessionReply.extend({ usage: SessionUsage });
export type SessionDetailReply = z.infer<typeof SessionDetailReply>;

export const SessionsReply = z.object({ sessions: z.array(SessionReply) });
export type SessionsReply = z.infer<typeof SessionsReply>;

export const DestroyReply = z.object({ destroyed: z.literal(true) });
