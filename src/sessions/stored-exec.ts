import * as z from 'zod';
import { WORKSPACE_IN_CELL } from '../core/cell.ts';
import { REFUSAL_CODES } from '../core/egress-refusal.ts';
import { EXEC_END_REASONS, LIMITS_REACHED } from '../core/session-words.ts';
import { storedJson } from '../lib/stored-json.ts';
import { UNKNOWN_EXIT_CODE } from './exec-end.ts';
import { readRow, type Unreadable } from './stored-row.ts';

/** `foreground`: one at a time, and the shell's folder counts. */
const EXEC_KINDS = ['foreground', 'background', 'terminal'] as const;
export type ExecKind = (typeof EXEC_KINDS)[number];

/** What never changes about a command, beside what stands in columns. */
const StoredFacts = z.object({
  timeoutMs: z.number().nullable().default(null),
  reportChanges: z.boolean().default(false),
});
export type ExecFacts = z.infer<typeof StoredFacts>;

/** Not that of the doors, which may change with their callers. */
const StoredRefusal = z.object({
  at: z.string(),
  host: z.string(),
  port: z.number(),
  reason: z.string().default(''),
  code: z.enum(REFUSAL_CODES),
  scheme: z.enum(['http', 'https']).optional(),
  method: z.string().optional(),
  path: z.string().optional(),
});

const ChangedFile = z.object({
  path: z.string(),
  change: z.enum(['added', 'modified', 'deleted']),
  size: z.number().default(0),
  /** Of small files. */
  content: z.string().optional(),
  encoding: z.enum(['utf8', 'base64']).optional(),
});
export type ChangedFile = z.infer<typeof ChangedFile>;

/** How a command ended. What is missing of it is not known any more, and says so. */
const ExecEnd = z.object({
  reason: z.enum(EXEC_END_REASONS).default('server_restarted'),
  /** The same for a person. */
  message: z.string().default('nobody knows any more how it ended'),
  /** Name of the signal that ended it. */
  signal: z.string().nullable().default(null),
  /** Who asked for its end. */
  killedBy: z.string().nullable().default(null),
});

/** All that is told of a command that has ended, but for its output. */
const StoredResult = z.object({
  /** It ended by itself with exit code 0. */
  ok: z.boolean().default(false),
  exitCode: z.number().default(UNKNOWN_EXIT_CODE),
  /** Where the next command begins. */
  cwd: z.string().default(WORKSPACE_IN_CELL),
  /** Why it began elsewhere than asked. */
  cwdNote: z.string().nullable().default(null),
  durationMs: z.number().default(0),
  end: ExecEnd.prefault({}),
  /** Fatal or not. */
  limitsReached: z.array(z.enum(LIMITS_REACHED)).default([]),
  cpuTimeMs: z.number().default(0),
  peakMemoryBytes: z.number().nullable().default(null),
  /** Bytes written, also those that were cut. */
  stdoutBytes: z.number().default(0),
  stderrBytes: z.number().default(0),
  /** Connections that were refused meanwhile. */
  egressRefused: z.array(StoredRefusal).default([]),
  /** Where they were asked for. */
  changedFiles: z.array(ChangedFile).optional(),
});
export type ExecResult = z.infer<typeof StoredResult> & { readonly execId: string };

const StoredExec = z
  .object({
    id: z.string(),
    session: z.string(),
    position: z.number(),
    command: z.string(),
    kind: z.enum(EXEC_KINDS),
    started_at: z.number(),
    deadline: z.number().nullable(),
    timed_out: z.number().transform((flag) => flag === 1),
    number: z.number().nullable(),
    phase: z.enum(['setup', 'command']),
    output_base: z.number(),
    facts: storedJson(StoredFacts),
    result: storedJson(StoredResult).nullable(),
  })
  .transform((row) => ({ ...row, result: row.result === null ? null : { execId: row.id, ...row.result } }));
export type ExecRow = z.infer<typeof StoredExec>;

/** Of a row that cannot be read: what its columns say all the same. */
export interface UnreadableExec extends Unreadable {
  readonly id: string;
  readonly position: number;
  readonly number: number;
}

export function readExec(row: Readonly<Record<string, unknown>>): ExecRow | UnreadableExec {
  return readRow(StoredExec, row, (problem) => ({
    problem,
    id: String(row['id']),
    position: Number(row['position']),
    number: Number(row['number'] ?? 0),
  }));
}
