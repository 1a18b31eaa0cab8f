import { enforcedBy } from '../core/enforcement.ts';
import type { ErrorCode } from '../core/errors.ts';
import type { ExecuteReply, HealthReply, LanguagesReply } from '../wire/execute.ts';
import type { MetricsReply } from '../wire/metrics.ts';

export const EXECUTE_REQUEST_EXAMPLES = {
  hello: { summary: 'the smallest request', value: { code: "print('Hello, world!')" } },
  input: {
    summary: 'standard input, arguments, a variable, a file and limits of its own',
    value: {
      code: "import os, sys\nprint(input(), sys.argv[1], os.environ['COLOUR'], open('data.txt').read())",
      stdin: 'a line\n',
      args: ['an argument'],
      env: { COLOUR: 'green' },
      files: [{ path: 'data.txt', content: 'from a file' }],
      timeout_ms: 2000,
      memory_mb: 64,
    },
  },
} as const;

export const EXECUTE_REPLY_EXAMPLE: ExecuteReply = {
  stdout: 'Hello, world!\n',
  stderr: '',
  exit_code: 0,
  execution_time_ms: 4.127,
  container_id: '61316ec9e263',
  language: 'python',
  image_name: 'host:python3',
  memory_used_mb: 9.25,
  cpu_percent: 61.5,
  file_path: '/tmp/exec_550e8400-e29b-41d4-a716-446655440000.py',
  receipt: {
    isolation: {
      driver: 'oci',
      runtime: 'crun 1.8.1',
      walls: 'nested',
      enforcement: enforcedBy('kernel'),
    },
    outcome: 'exited',
    limit_hit: null,
    wall_time_ms: 4.127,
    cpu_time_ms: 2.538,
    peak_memory_bytes: 9_699_328,
    warm: true,
    stdout_bytes: 14,
    stderr_bytes: 0,
  },
};

export const HEALTH_EXAMPLE: HealthReply = {
  status: 'ok',
  containers: { python: 'running', ruby: 'running' },
  uptime_seconds: 3600,
  driver: 'oci',
  driver_reason: 'auto: the first choice here',
  runtime: 'crun',
  strategy: 'fresh',
  walls: 'nested',
  walls_problem: null,
  problem: null,
};

export const LANGUAGES_EXAMPLE: LanguagesReply = {
  languages: [
    {
      name: 'python',
      extension: 'py',
      image_name: 'host:python3',
      route: '/execute/python',
      available: true,
      problem: null,
    },
  ],
};

export const METRICS_EXAMPLE = '# TYPE hotcell_runs_total counter\nhotcell_runs_total{language="python"} 1\n';

export const METRICS_VIEW_EXAMPLE: MetricsReply = {
  started_at: '2026-01-01T00:00:00.000Z',
  uptime_seconds: 3600,
  memory_bytes: 73_400_320,
  runs: { running: 1, waiting: 0, total: 1200 },
  sessions: {
    open: 3,
    paused: 1,
    created_total: 40,
    adopted_total: 0,
    ended_total: { deleted: 35, expired: 2 },
  },
  execs: {
    running: 2,
    waiting: 0,
    ended_total: { exit: 300, timeout: 5, killed: 3 },
    output_bytes_total: 1_048_576,
  },
  uploads_total: 12,
  syncs_total: 55,
  egress_refused_total: 4,
};

/** What `detail` may say. Codes without an entry show their hint instead. */
export const ERROR_DETAILS: Partial<Record<ErrorCode, string>> = {
  INVALID_JSON: 'the body is empty',
  INVALID_REQUEST: 'code: must be a string, got number',
  BODY_TOO_LARGE: 'the body has more than 102400 bytes',
  UNSUPPORTED_MEDIA_TYPE: 'the content type "text/plain" is not application/json',
  UNAUTHORIZED: 'the key is missing',
  HOST_REFUSED: '"evil.example" is no name of this server',
  ORIGIN_REFUSED: 'pages of "https://evil.example" may not call this server',
  LANGUAGE_UNKNOWN: 'there is no language "cobol"; known: python, ruby',
  SHUTTING_DOWN: 'the server is stopping',
  SESSION_UNKNOWN: 'there is no such session',
  SESSION_UNREACHABLE:
    'the session goes on, but this server could not take it over: its record cannot be read',
  SESSION_ENDED: 'the session ended at 2026-01-01T00:30:00.000Z: no request came for 1800 s',
  SESSION_PAUSED: 'the session is paused',
  SESSION_BUSY: 'another command runs in this session',
  SESSIONS_UNAVAILABLE: 'this server has no sessions',
  EXEC_UNKNOWN: 'there is no such command',
  EXEC_ENDED: 'the command has ended',
  COMMAND_REFUSED: 'the rule "sudo" refuses this command',
  FILE_REFUSED: 'files[0].path: must not have empty, . or .. parts',
  FILE_NOT_FOUND: 'there is no src/main.ts',
  DISK_FULL: 'the workspace has no room for these files',
  PATCH_REFUSED: 'src/main.ts: line 12 is not what the patch expects',
  QUOTA_EXCEEDED: 'the quota of 10 sessions is used up',
  RATE_LIMITED: 'more than 60 requests in a minute',
};
