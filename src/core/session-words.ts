/** Words about sessions that callers, the store and the code have in common. */

/** What kind of project a session is for. */
export const RUNTIME_TYPES = ['node', 'python', 'shell'] as const;
export type RuntimeType = (typeof RUNTIME_TYPES)[number];

/** Why a session ended. */
export const END_REASONS = [
  'deleted',
  'expired',
  'cell_lost',
  'memory',
  'host_restarted',
  'create_failed',
] as const;
export type EndReason = (typeof END_REASONS)[number];

/** Why a command of a session ended. */
export const EXEC_END_REASONS = [
  'exit',
  'signal',
  'timeout',
  'memory',
  'processes',
  'disk',
  'killed',
  'cell_lost',
  'server_restarted',
  'start_failed',
] as const;
export type ExecEndReason = (typeof EXEC_END_REASONS)[number];

/** Limits of a session that a command can run into without being ended by them. */
export const LIMITS_REACHED = ['memory', 'processes', 'disk'] as const;
export type LimitReached = (typeof LIMITS_REACHED)[number];

export const LONGEST_TIMEOUT_S = 7 * 24 * 3600;
