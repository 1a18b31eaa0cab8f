import * as z from 'zod';
import { DEFAULT_LIMITS, type LimitName } from '../core/limits.ts';
import { END_REASONS, RUNTIME_TYPES } from '../core/session-words.ts';
import { storedJson } from '../lib/stored-json.ts';
import { DEFAULT_SESSION_SETTINGS } from './settings.ts';
import { readRow, type Unreadable } from './stored-row.ts';

/** Without the bounds of today: they were checked when the cell was made. */
const StoredLimits = z.object({
  cpus: z.number().default(DEFAULT_LIMITS.cpus),
  memoryBytes: z.number().default(DEFAULT_LIMITS.memoryBytes),
  processes: z.number().default(DEFAULT_LIMITS.processes),
  diskBytes: z.number().default(DEFAULT_LIMITS.diskBytes),
  openFiles: z.number().default(DEFAULT_LIMITS.openFiles),
  wallTimeMs: z.number().default(DEFAULT_LIMITS.wallTimeMs),
  outputBytes: z.number().default(DEFAULT_LIMITS.outputBytes),
} satisfies Record<LimitName, z.ZodType>);

/** What never changes about a session. Without project, volume and owner nobody could go on with its files. */
const StoredFacts = z.object({
  project: z.string(),
  user: z.string().nullable().default(null),
  runtime: z.enum(RUNTIME_TYPES).default('shell'),
  cellName: z.string().default('session'),
  /** What made its cell; null where an older version did not note it. */
  driver: z.string().nullable().default(null),
  limits: StoredLimits.prefault({}),
  volumeKey: z.string(),
  volumeFolder: z.string().nullable().default(null),
  volumeOwner: z.number(),
  /** It was made for this session. */
  volumeFresh: z.boolean().default(false),
  dotenv: z.boolean().default(false),
  setup: z.boolean().default(false),
  ttlMs: z.number().default(DEFAULT_SESSION_SETTINGS.ttlMs),
  createdAt: z.number().default(0),
});
export type SessionFacts = z.infer<typeof StoredFacts>;

/** One session as it is kept. Of `ended` ones only the reason is left. */
const StoredSession = z.object({
  id: z.string(),
  tenant: z.string(),
  state: z.enum(['creating', 'running', 'paused', 'ending']),
  facts: storedJson(StoredFacts),
  cell_id: z.string().nullable(),
  record: z.string().nullable(),
  cwd: z.string(),
  touched_at: z.number(),
  paused_at: z.number().nullable(),
  allow: storedJson(z.array(z.string())).nullable(),
  sync_index: z.string().nullable(),
  end_reason: z.enum(END_REASONS).nullable(),
});
export type SessionRow = z.infer<typeof StoredSession>;

/** Of a row that cannot be read: what its columns say all the same. */
export interface UnreadableSession extends Unreadable {
  readonly id: string;
  readonly tenant: string;
  readonly cell_id: string | null;
  /** Undefined: nobody knows which volume its cell uses. */
  readonly volumeKey: string | undefined;
}

export function readSession(row: Readonly<Record<string, unknown>>): SessionRow | UnreadableSession {
  return readRow(StoredSession, row, (problem) => {
    const { id, tenant, cell_id: cellId, facts } = row;
    const volume = storedJson(z.object({ volumeKey: z.string() })).safeParse(facts);
    return {
      problem,
      id: String(id),
      tenant: String(tenant),
      cell_id: typeof cellId === 'string' ? cellId : null,
      volumeKey: volume.data?.volumeKey,
    };
  });
}
