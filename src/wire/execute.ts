import * as z from 'zod';
import { PROMISES } from '../core/enforcement.ts';
import {
  ENCODING_PROBLEM,
  Encoding,
  PlainText,
  RelativePath,
  Text,
  Variables,
  fitsEncoding,
} from './text.ts';

const ExtraFile = z
  .strictObject({
    path: RelativePath.describe('relative path beside the code'),
    content: Text,
    encoding: Encoding.default('utf8'),
  })
  .refine(fitsEncoding, ENCODING_PROBLEM);

/** Body of `POST /execute/<language>`. Unknown keys are refused: a misspelt limit is a missing limit. */
export const ExecuteRequest = z.strictObject({
  code: PlainText.describe('the program'),
  stdin: Text.default('').describe('what the program reads from its standard input'),
  args: z.array(PlainText).max(256).default([]).describe('arguments of the program'),
  env: Variables.default({}).describe('environment variables; values are never logged'),
  files: z.array(ExtraFile).max(256).default([]).describe('more files, laid beside the code'),
  timeout_ms: z.int().min(10).optional().describe("wall time; at most the operator's ceiling"),
  memory_mb: z.int().min(8).optional().describe("memory in MiB; at most the operator's ceiling"),
});
export type ExecuteRequest = z.infer<typeof ExecuteRequest>;

export const LIMIT_HIT = ['wall_time', 'memory', 'processes', 'output'] as const;

/** Which isolation was really used, and what the run cost. */
export const Receipt = z.object({
  isolation: z.object({
    driver: z.string().describe('what made the cell'),
    runtime: z.string().describe('with which runtime'),
    walls: z
      .enum(['nested', 'runtime'])
      .describe('nested: made for this run inside a cell that waited; runtime: by the runtime itself'),
    enforcement: z
      .record(z.enum(PROMISES), z.enum(['kernel', 'hypervisor', 'supervisor', 'nobody']))
      .describe('who keeps which promise'),
  }),
  outcome: z
    .enum(['exited', 'signalled', 'limit', 'cancelled'])
    .describe('how the program ended: by itself, by a signal, at a limit'),
  limit_hit: z.enum(LIMIT_HIT).nullable().describe('the limit that was reached, fatal or not'),
  wall_time_ms: z.number().describe('from the job sent to the end of the program'),
  cpu_time_ms: z.number().describe('CPU time of all its processes, without the boot of the interpreter'),
  peak_memory_bytes: z.int().nullable().describe('most memory at once; null where nobody counts'),
  warm: z.boolean().describe('the cell was booted before the request came'),
  stdout_bytes: z.int().describe('bytes the program wrote, also those that were cut'),
  stderr_bytes: z.int().describe('the same for stderr'),
});

/** Answer of `POST /execute/<language>`. */
export const ExecuteReply = z.object({
  stdout: z.string().describe('cut at 10 KB unless the operator says otherwise'),
  stderr: z.string().describe('cut like stdout; says in its last line why a program was ended'),
  exit_code: z.int().describe('124 after a timeout, 128 + n after signal n'),
  execution_time_ms: z.number().describe('wall time of the program'),
  container_id: z.string().describe('id of the cell'),
  language: z.string().describe('the language of the route'),
  image_name: z.string().describe('what the cell was made from'),
  memory_used_mb: z.number().describe('peak memory of this execution in MiB'),
  cpu_percent: z.number().describe('CPU time in percent of wall time'),
  file_path: z.string().describe('where the code stood in the cell'),
  packages: z
    .array(
      z.object({
        name: z.string(),
        version: z.string(),
        from: z.string().describe('host that it came from'),
        direct: z.boolean().describe('imported by the code itself; the others came along'),
      }),
    )
    .optional()
    .describe('what was installed for the imports of the code; only where the operator turned that on'),
  receipt: Receipt.describe('the isolation that was really used, and what the run cost'),
});
export type ExecuteReply = z.infer<typeof ExecuteReply>;

/** Body of every error. Failures of `/execute` that are ours also carry empty output and exit_code -1. */
export const ErrorReply = z.object({
  detail: z.string().describe('what is wrong; names the field'),
  code: z.string(),
  hint: z.string().describe('what to do about it'),
  field: z.string().optional(),
  stdout: z.string().optional(),
  stderr: z.string().optional(),
  exit_code: z.int().optional(),
});
export type ErrorReply = z.infer<typeof ErrorReply>;

export const HealthReply = z.object({
  status: z.enum(['ok', 'degraded']),
  containers: z.record(z.string(), z.enum(['running', 'stopped'])),
  uptime_seconds: z.number(),
  driver: z.string().describe('what makes the cells'),
  driver_reason: z.string().describe('why this driver'),
  runtime: z.string(),
  strategy: z.enum(['fresh', 'shared']).describe('a cell for every run, or one per language'),
  walls: z
    .enum(['nested', 'runtime'])
    .describe('how fresh cells are made: inside cells that wait, or each by the runtime itself'),
  walls_problem: z.string().nullable().describe('why they are not nested, where that was wanted'),
  problem: z.string().nullable().describe('why no cell can be made at present'),
});
export type HealthReply = z.infer<typeof HealthReply>;

export const LanguagesReply = z.object({
  languages: z.array(
    z.object({
      name: z.string(),
      extension: z.string(),
      image_name: z.string(),
      route: z.string(),
      available: z.boolean(),
      problem: z.string().nullable().describe('why it is not available, and what to do'),
    }),
  ),
});
export type LanguagesReply = z.infer<typeof LanguagesReply>;
