interface RunnerErrorParts {
  /** Of the server's answer; 0 where there was none. */
  readonly status?: number;
  readonly hint: string;
  /** The field of the request at fault. */
  readonly field?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/**
 * Everything that goes wrong between a client and a server. `code` is one of the server's own codes, or one of ours:
 * NETWORK (no answer), BAD_REPLY (an answer that makes no sense), CANCELLED (by the caller's own signal).
 */
export class RunnerError extends Error {
  readonly code: string;
  readonly status: number;
  readonly hint: string;
  readonly field: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: string, message: string, parts: RunnerErrorParts) {
    super(message, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.name = 'RunnerError';
    this.code = code;
    this.status = parts.status ?? 0;
    this.hint = parts.hint;
    this.field = parts.field;
    this.retryAfterSeconds = parts.retryAfterSeconds;
  }
}

export function networkError(message: string, cause?: unknown): RunnerError {
  return new RunnerError('NETWORK', message, {
    hint: 'Check that the server runs and that its address is right.',
    cause,
  });
}

export function badReply(what: string, cause?: unknown): RunnerError {
  return new RunnerError('BAD_REPLY', `the server's answer makes no sense: ${what}`, {
    hint: 'Check that the address is that of a Hotcell server, and that client and server have the same version.',
    cause,
  });
}

export function cancelled(signal: AbortSignal): RunnerError {
  return new RunnerError('CANCELLED', 'the caller did not wait any longer', {
    hint: 'A command that has begun goes on; GET …/execs lists it.',
    cause: signal.reason,
  });
}

/** The words of an error and of what caused it: `fetch` hides the interesting part there. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = error.cause instanceof Error ? reasonOf(error.cause) : '';
  return inner === '' || inner === error.message ? error.message : `${error.message}: ${inner}`;
}
