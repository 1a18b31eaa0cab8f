import { HotcellError, type ErrorCode } from '../core/errors.ts';

/** Exit codes of ours. `run` and `session exec` otherwise end with the code of the program, 124 after a timeout. */
export const EXIT_CODES = {
  done: 0,
  /** `doctor` found that the chosen driver cannot serve, `down` could not end everything. */
  unhealthy: 1,
  /** A fleet that did not do all of its work, or cannot. */
  fleet: 1,
  usage: 2,
  config: 78,
  ours: 125,
  hangup: 129,
  interrupted: 130,
  terminated: 143,
} as const;

const EXIT_CODE_OF_ERROR = {
  CONFIG_INVALID: EXIT_CODES.config,
  INVALID_REQUEST: EXIT_CODES.usage,
  LANGUAGE_UNKNOWN: EXIT_CODES.usage,
  FLEET_BUSY: EXIT_CODES.fleet,
  FLEET_UNKNOWN: EXIT_CODES.fleet,
  FLEET_STATE: EXIT_CODES.fleet,
  FLEET_GIT: EXIT_CODES.fleet,
  GRAPH_INVALID: EXIT_CODES.fleet,
  AGENT_FAILED: EXIT_CODES.fleet,
  AGENT_SIGNED_OUT: EXIT_CODES.fleet,
  TASKS_FAILED: EXIT_CODES.fleet,
  MERGE_CONFLICT: EXIT_CODES.fleet,
  CANCELLED: EXIT_CODES.interrupted,
} satisfies Partial<Record<ErrorCode, number>>;

/** Also for errors of the client, whose codes may be a server's that we do not know. */
export function toExitCode({ code }: { readonly code: string }): number {
  return new Map<string, number>(Object.entries(EXIT_CODE_OF_ERROR)).get(code) ?? EXIT_CODES.ours;
}

/** A command line that cannot be meant. */
export function usageError(message: string, hint: string): HotcellError {
  return new HotcellError('INVALID_REQUEST', message, { hint });
}
