import * as z from 'zod';
import { EXEC_END_REASONS, LIMITS_REACHED, LONGEST_TIMEOUT_S } from '../core/session-words.ts';
import { EgressRefusal } from '../core/egress-refusal.ts';
import { Encoding, PlainText, Text, Variables, isBase64 } from './text.ts';

/** Body of `POST /v1/sessions/{id}/exec`. */
export const SessionExecRequest = z.strictObject({
  command: PlainText.min(1)
    .max(128 * 1024)
    .describe('for bash -c'),
  timeout_s: z
    .number()
    .positive()
    .max(LONGEST_TIMEOUT_S)
    .optional()
    .describe('600 unless given; then SIGTERM, 5 s later SIGKILL'),
  reset_cwd: z.boolean().default(false).describe('begin in the workspace again'),
  cwd: PlainText.min(1)
    .max(4096)
    .optional()
    .describe('begin here; relative to the current folder of the session'),
  env: Variables.default({}).describe('for this command only; values are never logged'),
  stdin: Text.optional().describe('all of its standard input'),
  stream: z.boolean().default(false).describe('answer with events instead of one reply'),
  background: z.boolean().default(false).describe('answer at once; the command runs beside others'),
  on_busy: z
    .enum(['wait', 'reject'])
    .default('wait')
    .describe('when another command runs: wait for its end, or 409'),
  report_changed_files: z.boolean().default(false).describe('tell which files it changed'),
});
export type SessionExecRequest = z.infer<typeof SessionExecRequest>;

/** How a command ended. */
const ExecEnd = z.object({
  reason: z.enum(EXEC_END_REASONS),
  message: z.string().describe('the same for a person'),
  signal: z.string().nullable().describe('name of the signal that ended it'),
  killed_by: z
    .string()
    .nullable()
    .describe('who asked for its end: request, session_deleted, session_expired, disconnect'),
});

const ChangedFile = z.object({
  path: z.string(),
  change: z.enum(['added', 'modified', 'deleted']),
  size: z.int(),
  content: z.string().optional().describe('of small files'),
  encoding: Encoding.optional(),
});

const ExecFacts = z.object({
  exec_id: z.string(),
  command: z.string(),
  background: z.boolean(),
  terminal: z.boolean(),
  started_at: z.string(),
  output_bytes: z.int().describe('bytes of stdout and stderr so far, also of those no longer kept'),
});

/** What a command that has ended answers; also the data of the `exit` event. */
export const ExecResult = z.object({
  exec_id: z.string(),
  ok: z.boolean().describe('it ended by itself with exit code 0'),
  exit_code: z
    .int()
    .describe(
      '124 after a timeout, 130 when killed on request, 128 + n after signal n, -1 when nobody knows',
    ),
  cwd: z.string().describe('where the next command begins'),
  cwd_note: z.string().nullable().describe('why it began elsewhere than asked'),
  duration_ms: z.number(),
  end: ExecEnd,
  limits_reached: z.array(z.enum(LIMITS_REACHED)).describe('fatal or not'),
  cpu_time_ms: z.number(),
  peak_memory_bytes: z.int().nullable(),
  stdout_bytes: z.int().describe('bytes written, also those that were cut'),
  stderr_bytes: z.int(),
  egress_refused: z.array(EgressRefusal).describe('connections that were refused meanwhile'),
  changed_files: z.array(ChangedFile).optional(),
});
export type ExecResult = z.infer<typeof ExecResult>;

/** Answer of `POST …/exec`. */
export const SessionExecReply = ExecResult.extend({
  stdout: z
    .string()
    .describe('cut in the middle when it is long; bytes that are no text are shown as \ufffd'),
  stderr: z.string().describe('cut like stdout'),
  output_cut_bytes: z
    .int()
    .describe('bytes of both that are not in this reply; GET …/output has what is kept'),
});
export type SessionExecReply = z.infer<typeof SessionExecReply>;

/** Answer of `POST …/exec` with `background`. */
export const BackgroundReply = z.object({ exec_id: z.string(), state: z.literal('running') });
export type BackgroundReply = z.infer<typeof BackgroundReply>;

export const ExecReply = ExecFacts.extend({
  state: z.enum(['waiting', 'running', 'ended']),
  result: ExecResult.nullable().describe('once it has ended'),
});
export type ExecReply = z.infer<typeof ExecReply>;

export const ExecsReply = z.object({ execs: z.array(ExecReply) });
export type ExecsReply = z.infer<typeof ExecsReply>;

/** A piece of output. `data` is exact when there is no `base64`. */
export const OutputChunk = z.object({
  stream: z.enum(['stdout', 'stderr']),
  from: z.int().describe('its place in all output of the command'),
  data: z.string(),
  base64: z.string().optional().describe('the bytes, when they are no text'),
});
export type OutputChunk = z.infer<typeof OutputChunk>;

/** Answer of `GET …/execs/{id}/output?from=`. */
export const OutputReply = z.object({
  from: z.int(),
  next: z.int().describe('ask from here for more'),
  chunks: z.array(OutputChunk),
  cut: z.array(z.object({ from: z.int(), to: z.int() })).describe('what is no longer kept of the range'),
  result: ExecResult.nullable().describe('when the command has ended and this is the last of its output'),
});
export type OutputReply = z.infer<typeof OutputReply>;

/** Body of `POST …/execs/{id}/stdin`. */
export const StdinRequest = z
  .strictObject({
    data: Text.default(''),
    encoding: Encoding.default('utf8'),
    eof: z.boolean().default(false),
  })
  .refine(({ data, encoding }) => encoding !== 'base64' || isBase64(data), {
    path: ['data'],
    message: 'must be base64 when encoding is base64',
  });

export const StdinReply = z.object({ written: z.int().describe('bytes') });
export type StdinReply = z.infer<typeof StdinReply>;

export const KillReply = z.object({ killed: z.boolean(), exec_ids: z.array(z.string()) });
export type KillReply = z.infer<typeof KillReply>;
