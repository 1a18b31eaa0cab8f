import { HotcellError, type ErrorCode } from '../core/errors.ts';

/** Exit codes of ours. `hotcell run` otherwise ends with the code of the program, 124 after a timeout. */
export const EXIT_CODES = {
  done: 0,
  /** `doctor` found that the chosen driver cannot serve. */
  unhealthy: 1,
  usage: 2,
  config: 78,
  ours: 125,
  hangup: 129,
  interrupted: 130,
  terminated: 143,
} as const;

const EXIT_CODE_OF_ERROR: Readonly<Partial<Record<ErrorCode, number>>> = {
  CONFIG_INVALID: EXIT_CODES.config,
  INVALID_REQUEST: EXIT_CODES.usage,
  LANGUAGE_UNKNOWN: EXIT_CODES.usage,
  CANCELLED: EXIT_CODES.interrupted,
};

export function toExitCode(error: HotcellError): number {
  return EXIT_CODE_OF_ERROR[error.code] ?? EXIT_CODES.ours;
}

/** A command line that cannot be meant. */
export function usageError(message: string, hint: string): HotcellError {
  return new HotcellError('INVALID_REQUEST', message, { hint });
}
