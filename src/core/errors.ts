interface ErrorFacts {
  /** Of HTTP. */
  readonly status: number;
  /** What a person can do. */
  readonly hint: string;
  /** The same may work later. */
  readonly retry?: true;
}

/** Everything that can go wrong on our side or in a request, in one table. */
const TABLE = {
  INVALID_JSON: { status: 400, hint: 'Send one JSON object, for example {"code": "print(1)"}.' },
  INVALID_REQUEST: { status: 422, hint: 'Correct the named field; /docs lists every field.' },
  BAD_REQUEST: { status: 400, hint: 'Send a well-formed HTTP request.' },
  REQUEST_TIMEOUT: { status: 408, retry: true, hint: 'Send the whole request in time.' },
  HEADERS_TOO_LARGE: { status: 431, hint: 'Send fewer or shorter headers.' },
  BODY_TOO_LARGE: {
    status: 413,
    hint: 'Send less, or raise bodyLimitBytes (for sessions: sessions.bodyLimitBytes) in the configuration.',
  },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, hint: 'Send the header content-type: application/json.' },
  UNAUTHORIZED: { status: 401, hint: 'Send the header Authorization: Bearer <HOTCELL_API_KEY>.' },
  HOST_REFUSED: {
    status: 403,
    hint: 'Call the server by localhost or its IP address, or add the name to allowedHosts.',
  },
  ORIGIN_REFUSED: {
    status: 403,
    hint: 'Add the origin to corsOrigins if pages from there may run code here.',
  },
  FILE_REFUSED: {
    status: 422,
    hint: 'Name a plain file by a path below the workdir, and stay within the limits of size and disk.',
  },
  NOT_FOUND: { status: 404, hint: 'See /docs for the routes.' },
  METHOD_NOT_ALLOWED: { status: 405, hint: 'See the allow header for the methods of this route.' },
  LANGUAGE_UNKNOWN: { status: 404, hint: 'GET /languages lists the languages of this server.' },
  LANGUAGE_UNAVAILABLE: { status: 503, hint: 'Run `hotcell doctor`; it names what is missing.' },
  LIMIT_TOO_HIGH: { status: 422, hint: 'Ask for less, or raise the ceiling in the configuration.' },
  LIMIT_TOO_LOW: { status: 422, hint: 'Ask for more: the interpreter alone needs that much.' },
  POLICY_UNENFORCEABLE: {
    status: 422,
    hint: 'Pick a driver that enforces it, or allow the weaker promise by name (`weaker` in the configuration).',
  },
  TOO_BUSY: { status: 429, retry: true, hint: 'Try again after the seconds of the retry-after header.' },
  SESSION_UNKNOWN: { status: 404, hint: 'POST /v1/sessions makes one; its reply has the id.' },
  SESSION_ENDED: { status: 410, hint: 'Make a new session of the same project.' },
  SESSION_PAUSED: { status: 409, hint: 'POST …/resume first.' },
  SESSION_BUSY: {
    status: 409,
    retry: true,
    hint: 'Wait for the end of the running command, send "on_busy": "wait", or run it in the background.',
  },
  SESSIONS_UNAVAILABLE: { status: 503, retry: true, hint: 'Run `hotcell doctor` on the host.' },
  SESSION_UNREACHABLE: {
    status: 503,
    hint: 'Nothing of it was touched. The log of the server says what is wrong; every start tries again.',
  },
  EXEC_UNKNOWN: { status: 404, hint: 'GET …/execs lists the commands of the session.' },
  EXEC_ENDED: { status: 409, hint: 'The command has ended; start another one.' },
  COMMAND_REFUSED: {
    status: 403,
    hint: 'The named rule of the operator refuses this command; the setting sessions.rules has all of them.',
  },
  FILE_NOT_FOUND: { status: 404, hint: 'GET …/fs?path=. lists the workspace.' },
  FILE_TOO_LARGE: { status: 413, hint: 'GET …/archive has whole files of any size.' },
  DISK_FULL: { status: 507, hint: 'Remove files from the workspace, or ask for more disk_mb.' },
  PATCH_REFUSED: {
    status: 409,
    hint: 'Make the patch against the files as they are now; nothing was changed.',
  },
  QUOTA_EXCEEDED: {
    status: 429,
    retry: true,
    hint: 'End a session, or ask the operator for a larger quota.',
  },
  RATE_LIMITED: { status: 429, retry: true, hint: 'Try again after the seconds of the retry-after header.' },
  WORKBENCH_UNKNOWN: { status: 404, hint: 'Call create_session for a new one, or leave session_id out.' },
  RUN_UNKNOWN: { status: 404, hint: 'The reply of run_code has the run_id.' },
  PERMISSION_REFUSED: {
    status: 403,
    hint: 'Ask for less, or have the operator allow it (setting mcp.grantable).',
  },
  PACKAGE_UNAVAILABLE: { status: 422, hint: 'Correct the name or the version of the named package.' },
  SNIPPET_UNKNOWN: { status: 404, hint: 'Call list_snippets for the names.' },
  SNIPPET_REFUSED: {
    status: 422,
    hint: 'A name of letters, digits, - and _, and code with a comment that has @description.',
  },
  FLEET_BUSY: {
    status: 409,
    hint: 'Another orchestrator works on this feature: watch it with `hotcell fleet status`, or end it with `hotcell fleet stop`.',
  },
  FLEET_UNKNOWN: { status: 404, hint: 'Name the feature with --feature; `hotcell fleet run` starts one.' },
  FLEET_STATE: {
    status: 500,
    hint: 'Mend or remove the named file; branches and commits of the feature are not touched by that.',
  },
  FLEET_GIT: {
    status: 500,
    hint: "The message has git's own words; `git status` and `git worktree list` show where things are.",
  },
  WORKTREE_TOO_LARGE: {
    status: 413,
    hint: 'Raise resources.worktree_disk in .mahabharatha/config.yaml, or have the task write less.',
  },
  GRAPH_INVALID: {
    status: 422,
    hint: 'Correct the named field of the named task; `hotcell fleet run --dry-run` checks the graph.',
  },
  AGENT_FAILED: {
    status: 502,
    retry: true,
    hint: 'Try the command of the agent by hand; `agent` in .mahabharatha/config.yaml says which it is.',
  },
  AGENT_SIGNED_OUT: {
    status: 401,
    hint: 'Sign in again (`claude auth login`, or `claude setup-token` and CLAUDE_CODE_OAUTH_TOKEN), or mend the API key; then `hotcell fleet resume`.',
  },
  TASKS_FAILED: {
    status: 500,
    hint: 'See why with hotcell fleet logs; then hotcell fleet retry --all-failed and hotcell fleet resume.',
  },
  MERGE_CONFLICT: {
    status: 409,
    hint: 'Merge the named branches by hand, then `hotcell fleet resume`; every commit is still on its branch.',
  },
  CANCELLED: { status: 499, hint: 'The client went away before the answer was ready.' },
  DRIVER_UNAVAILABLE: { status: 503, retry: true, hint: 'Run `hotcell doctor` on the host.' },
  IMAGE_UNAVAILABLE: {
    status: 503,
    retry: true,
    hint: 'Run `hotcell images` on the host; it says how to get each image.',
  },
  CELL_START_FAILED: {
    status: 503,
    retry: true,
    hint: "Run `hotcell doctor` on the host; the log has the runtime's own words.",
  },
  CELL_LOST: { status: 503, retry: true, hint: 'The cell was ended from outside. Send the request again.' },
  SHUTTING_DOWN: {
    status: 503,
    retry: true,
    hint: 'The server is stopping. Try another one, or again later.',
  },
  DATA_TOO_NEW: {
    status: 500,
    hint: 'Start the version of Hotcell that wrote it, or name another folder (setting sessions.dir).',
  },
  CONFIG_INVALID: { status: 500, hint: 'Correct the named setting; `hotcell config` shows all of them.' },
  INTERNAL: { status: 500, retry: true, hint: 'This is a defect of Hotcell; the log has the details.' },
} as const satisfies Readonly<Record<string, ErrorFacts>>;

export type ErrorCode = keyof typeof TABLE;
export const ERRORS: Readonly<Record<ErrorCode, ErrorFacts>> = TABLE;

interface ErrorExtras {
  /** The request field or setting at fault, as a path such as `files[0].path`. */
  readonly field?: string;
  readonly hint?: string;
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/** The only error class that we throw on purpose. */
export class HotcellError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly hint: string;
  readonly field: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.name = 'HotcellError';
    this.code = code;
    this.status = ERRORS[code].status;
    this.hint = extras.hint ?? ERRORS[code].hint;
    this.field = extras.field;
    this.retryAfterSeconds = extras.retryAfterSeconds;
  }
}

export function toHotcellError(error: unknown): HotcellError {
  if (error instanceof HotcellError) return error;
  return new HotcellError('INTERNAL', messageOf(error), { cause: error });
}

/** The error for work that `signal` ended: the reason given with it, if it is one of ours. */
export function toCancelError(signal: AbortSignal): HotcellError {
  return signal.reason instanceof HotcellError
    ? signal.reason
    : new HotcellError('CANCELLED', 'the run was cancelled');
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
