import * as z from 'zod';
import { LONGEST_TIME_MS } from '../core/setting-values.ts';
import { Denial } from './permissions.ts';
import { ENCODING_PROBLEM, Encoding, PlainText, RelativePath, Text, fitsEncoding } from './text.ts';

const MOST_CODE = 1_000_000;
const MOST_CONTENT = 8 * 1024 * 1024;
const MOST_FILES = 100;
const MOST_PACKAGES = 50;
const LONGEST_WAIT_MS = 600_000;

export const SessionId = z
  .string()
  .min(1)
  .max(128)
  .describe('handle of a session, as create_session or an earlier reply gave it');
export const RunId = z.string().min(1).max(128).describe('the run_id of an earlier reply of run_code');
const WaitMs = z
  .int()
  .min(0)
  .max(LONGEST_WAIT_MS)
  .describe('how long to wait for the end before the reply says status "running"');

const file = {
  path: RelativePath.max(1024).describe('relative to the work folder'),
  content: Text.max(MOST_CONTENT).describe('text, or base64 if encoding says so'),
  encoding: Encoding.default('utf8').describe('how content is written'),
};

/** Arguments of the tool `run_code`. */
export const RunCodeArguments = z.strictObject({
  code: PlainText.max(MOST_CODE).describe('the whole program'),
  language: z
    .string()
    .min(1)
    .max(64)
    .default('typescript')
    .describe('typescript unless given; runner://capabilities lists what there is'),
  session_id: SessionId.optional(),
  packages: z
    .array(PlainText.min(1).max(300))
    .max(MOST_PACKAGES)
    .default([])
    .describe('npm packages beside those that the code imports, such as "zod" or "zod@3"'),
  snippets: z
    .array(z.string().min(1).max(64))
    .max(MOST_PACKAGES)
    .default([])
    .describe('names of saved snippets that the code imports as "snippets/<name>"'),
  files: z
    .array(z.strictObject(file).refine(fitsEncoding, ENCODING_PROBLEM))
    .max(MOST_FILES)
    .default([])
    .describe('files to write into the work folder, which is the current folder, before the run'),
  stdin: Text.max(MOST_CODE).optional().describe('what the program reads from its standard input'),
  timeout_ms: z
    .int()
    .min(10)
    .max(LONGEST_TIME_MS)
    .optional()
    .describe('milliseconds after which the code is killed'),
  timeout: z.int().min(10).max(LONGEST_TIME_MS).optional().describe('another name of timeout_ms, which wins'),
  wait_ms: WaitMs.optional(),
});
export type RunCodeArguments = z.infer<typeof RunCodeArguments>;

export const GetRunArguments = z.strictObject({
  run_id: RunId,
  session_id: SessionId.optional(),
  wait_ms: WaitMs.optional(),
});
export const CancelRunArguments = z.strictObject({ run_id: RunId, session_id: SessionId.optional() });
export const OfSessionArguments = z.strictObject({ session_id: SessionId.optional() });
export const NoArguments = z.strictObject({});

export const ReadFileArguments = z.strictObject({
  path: RelativePath.max(1024).describe('relative to the work folder'),
  session_id: SessionId.optional(),
});
export const WriteFileArguments = z
  .strictObject({ ...file, session_id: SessionId.optional() })
  .refine(fitsEncoding, ENCODING_PROBLEM);
export const ListFilesArguments = z.strictObject({
  path: z
    .union([z.literal('.'), RelativePath])
    .default('.')
    .describe('folder, relative to the work folder; . is the work folder itself'),
  session_id: SessionId.optional(),
});

const Package = z.object({
  name: z.string(),
  version: z.string(),
  from: z.string().describe('host of the registry'),
  direct: z.boolean().describe('named by the code; the others came along'),
});

const RUN_STATUSES = [
  'ok',
  'error',
  'timeout',
  'memory',
  'cancelled',
  'denied',
  'failed',
  'running',
] as const;

const Bytes = z.int().min(0);

/**
 * Reply of `run_code`, `get_run` and `cancel_run`. `run_id` and `session_id` are called as the arguments are that take
 * them; what is not known is left out.
 */
export const RunReply = z.object({
  success: z.boolean().describe('the code ran and ended with exit code 0'),
  status: z
    .enum(RUN_STATUSES)
    .describe(
      'error: it ended by itself with another exit code; denied: a permission is missing; failed: it did not run; ' +
        'running: ask get_run',
    ),
  run_id: z.string(),
  session_id: z.string().optional().describe('left out when the session was only for this run and is gone'),
  language: z.string(),
  phase: z.enum(['waiting', 'packages', 'image', 'cell', 'running', 'ended']),
  exitCode: z
    .int()
    .optional()
    .describe(
      '124 after a timeout, 130 when cancelled, 128 + n after signal n; left out when it did not run',
    ),
  signal: z.string().optional(),
  message: z.string().optional().describe('what went wrong'),
  hint: z.string().optional().describe('what to do about it'),
  stdout: z.string(),
  stderr: z.string(),
  stdoutBytes: Bytes.describe('all that was printed'),
  stderrBytes: Bytes,
  stdoutCutBytes: Bytes.describe('left out of the middle of stdout here'),
  stderrCutBytes: Bytes,
  denials: z
    .array(
      Denial.extend({
        grant: z
          .object({
            tool: z.literal('grant_permission'),
            arguments: z.record(z.string(), z.union([z.string(), z.array(z.string())])),
          })
          .optional()
          .describe('the call that allows it'),
      }),
    )
    .describe('accesses that were refused'),
  packages: z.array(Package).describe('what the code could import'),
  installed: z.array(Package).describe('those that had to be installed for this run'),
  filesChanged: z.array(z.object({ path: z.string(), sizeBytes: Bytes })),
  durationMs: z.number(),
  phases: z.record(z.string(), z.number()).describe('milliseconds by phase'),
  limits: z.record(z.string(), z.number()).optional(),
  isolation: z
    .object({
      driver: z.string(),
      runtime: z.string(),
      enforcement: z.record(z.string(), z.string()).describe('who keeps each promise; "nobody" is a warning'),
    })
    .optional()
    .describe('what really held the code; left out when nothing ran'),
  cell: z.string().optional().describe('the cell that was used'),
  warnings: z.array(z.string()),
});
export type RunReply = z.infer<typeof RunReply>;

export const SessionView = z.object({
  session_id: z.string(),
  expiresAt: z.string().describe('when it ends unless it is used before'),
  runs: z.int().describe('runs that are known'),
});
export type SessionView = z.infer<typeof SessionView>;
export const SessionsView = z.object({ sessions: z.array(SessionView) });
export const DestroyedView = z.object({ session_id: z.string(), destroyed: z.literal(true) });

export const FileView = z.object({
  session_id: z.string(),
  path: z.string(),
  content: z.string(),
  encoding: Encoding,
  sizeBytes: Bytes,
});
export const WrittenView = z.object({ session_id: z.string(), path: z.string(), sizeBytes: Bytes });
export const FolderView = z.object({
  session_id: z.string(),
  path: z.string(),
  entries: z.array(z.object({ name: z.string(), kind: z.string(), sizeBytes: Bytes })),
});
