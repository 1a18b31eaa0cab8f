import * as z from 'zod';

/** ISO 8601. Files of others may have times in forms of their own; they are shown as they are. */
const Time = z.string();

const TASK_STATUSES = [
  'todo',
  'pending',
  'claimed',
  'in_progress',
  'verifying',
  'complete',
  'failed',
  'blocked',
  'paused',
  'waiting_retry',
] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** What calls of the agent have cost, all together. */
export const AgentFigures = z.looseObject({
  turns: z.number().default(0),
  tool_calls: z.number().default(0),
  input_tokens: z.number().default(0),
  output_tokens: z.number().default(0),
  /** Known only of calls that came to their end. */
  cost_usd: z.number().default(0),
});

export const TaskState = z.looseObject({
  status: z.enum(TASK_STATUSES),
  level: z.int().optional(),
  worker_id: z.int().nullish(),
  updated_at: Time.nullish(),
  claimed_at: Time.nullish(),
  started_at: Time.nullish(),
  completed_at: Time.nullish(),
  duration_ms: z.number().nullish(),
  error: z.string().nullish(),
  /** Failures so far; a worker that was lost or stopped is none of the task's. */
  retry_count: z.int().default(0),
  last_retry_at: Time.nullish(),
  next_retry_at: Time.nullish(),
  /** Of the worker: 0 done, 1 error, 2 checkpoint, 3 blocked, 4 escalation. */
  exit_code: z.int().nullish(),
  commit: z.string().nullish(),
  /** What there was when the agent last asked to be called again, and on whose branch it is. */
  wip: z.looseObject({ commit: z.string(), worker_id: z.int() }).nullish(),
  /** How often its worker was lost. */
  losses: z.int().optional(),
  agent: AgentFigures.optional(),
  /** What the agent said last in place of `done`: for the next attempt, whoever makes it. */
  said: z.string().nullish(),
  /** What a person has answered. */
  answer: z.string().nullish(),
  /** What the commit changed, and what of that the task does not own. */
  changed_files: z.array(z.string()).optional(),
  foreign_files: z.array(z.string()).optional(),
});
export type TaskState = z.infer<typeof TaskState>;

const WORKING_STATUSES = ['initializing', 'ready', 'running', 'idle', 'checkpointing'] as const;
const WORKER_STATUSES = [
  ...WORKING_STATUSES,
  'stopping',
  'stopped',
  'crashed',
  'blocked',
  'stalled',
] as const;
/** Does tasks, or soon will. */
export const WORKING: ReadonlySet<string> = new Set(WORKING_STATUSES);
/** Has a cell, unless somebody is dead who said so. */
export const AWAKE: ReadonlySet<string> = new Set([...WORKING_STATUSES, 'stopping']);

export const WorkerState = z.looseObject({
  worker_id: z.int(),
  status: z.enum(WORKER_STATUSES),
  current_task: z.string().nullish(),
  /** What its agent does now. */
  activity: z.string().nullish(),
  port: z.int().nullish(),
  container_id: z.string().nullish(),
  container_name: z.string().nullish(),
  worktree_path: z.string().nullish(),
  branch: z.string().nullish(),
  health_check_at: Time.nullish(),
  started_at: Time.nullish(),
  ready_at: Time.nullish(),
  last_task_completed_at: Time.nullish(),
  tasks_completed: z.int().default(0),
  /** How often its cell was lost. */
  restarts: z.int().default(0),
  error: z.string().nullish(),
  /** Somebody wants this worker to end: `hotcell fleet stop --worker`. */
  stop_requested: z.boolean().optional(),
});
export type WorkerState = z.infer<typeof WorkerState>;

const LEVEL_STATUSES = ['pending', 'running', 'merging', 'complete', 'conflict', 'failed'] as const;
const MERGE_STATUSES = [
  'pending',
  'waiting',
  'collecting',
  'merging',
  'validating',
  'rebasing',
  'complete',
  'conflict',
  'failed',
] as const;

const MergeDetails = z.looseObject({
  /** Of the branch that did not merge, or of the check that did not pass. */
  branch: z.string().optional(),
  files: z.array(z.string()).optional(),
  gate: z.string().optional(),
  /** What a person does next, line by line. */
  instructions: z.array(z.string()).optional(),
});

export const LevelState = z.looseObject({
  status: z.enum(LEVEL_STATUSES),
  started_at: Time.nullish(),
  completed_at: Time.nullish(),
  updated_at: Time.nullish(),
  merge_commit: z.string().nullish(),
  merge_status: z.enum(MERGE_STATUSES).nullish(),
  merge_details: MergeDetails.nullish(),
});
export type LevelState = z.infer<typeof LevelState>;

export const LogEntry = z.looseObject({
  timestamp: Time,
  event: z.string(),
  data: z.record(z.string(), z.unknown()).default({}),
});
export type LogEntry = z.infer<typeof LogEntry>;

/** `.mahabharatha/state/<feature>.json`. What it has besides is kept as it is. */
export const FleetState = z.looseObject({
  feature: z.string(),
  started_at: Time,
  current_level: z.int().default(0),
  tasks: z.record(z.string(), TaskState).default({}),
  workers: z.record(z.string(), WorkerState).default({}),
  levels: z.record(z.string(), LevelState).default({}),
  execution_log: z.array(LogEntry).default([]),
  metrics: z.unknown().optional(),
  paused: z.boolean().default(false),
  error: z.string().nullish(),
  /** How workers are run, as chosen by the last start. */
  mode: z.string().nullish(),
  mode_reason: z.string().nullish(),
  /** Of every worktree: `resources.worktree_disk`, and what sees to it. */
  worktree_bytes: z.number().nullish(),
  worktree_bound: z.string().nullish(),
  /** The commit that the feature branch began at, and the branch that `merge` leads into. */
  base_commit: z.string().nullish(),
  target_branch: z.string().nullish(),
  /** Of the graph that this run began with, relative to the repository. */
  task_graph: z.string().nullish(),
  /** What it has cost to plan and design the feature. */
  planning: AgentFigures.optional(),
  /** Dependencies that could not be installed: why, by command. */
  setup_problems: z.record(z.string(), z.string()).optional(),
  finished_at: Time.nullish(),
  /** All runs but the last one together, without the pauses between them; when that began, and its last sign of life. */
  led_ms: z.number().nonnegative().nullish().catch(null),
  led_since: Time.nullish(),
  led_until: Time.nullish(),
  /** What `--workers` said last; `resume` keeps it. */
  asked_workers: z.int().positive().nullish().catch(null),
});
export type FleetState = z.infer<typeof FleetState>;

/** Of `execution_log` as much stays in the state; all of it is in `<feature>-events.jsonl`. */
export const LOG_ENTRIES_KEPT = 500;
