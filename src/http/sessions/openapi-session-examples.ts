import type { EgressReply } from '../../wire/egress.ts';
import type { ExecReply, ExecResult, OutputReply, SessionExecReply } from '../../wire/session-exec.ts';
import type { ApplyPatchReply, ChangesReply, FsReply, SyncReply } from '../../wire/session-files.ts';
import type { SessionDetailReply, SessionReply } from '../../wire/sessions.ts';
import { EXECUTE_REPLY_EXAMPLE } from '../openapi-examples.ts';

const AT = '2026-01-01T12:00:00.000Z';
const EXEC_ID = 'exec_5f0c2ab19d3e4c77';

export const CREATE_EXAMPLES = {
  smallest: {
    summary: 'the smallest request',
    value: { project_id: 'proj_abc123', runtime_type: 'node' },
  },
  network: {
    summary: 'with dependencies from npm, and limits of its own',
    value: {
      project_id: 'proj_abc123',
      runtime_type: 'node',
      user_id: 'ada',
      network: ['npm', 'api.example.org'],
      setup: true,
      ttl_s: 3600,
      limits: { memory_mb: 1024, processes: 128 },
    },
  },
} as const;

export const SESSION_EXAMPLE: SessionReply = {
  session_id: 'session_9f86d081884c7d659a2feaa0c55ad015',
  workspace_path: '/workspace/proj_abc123',
  project_id: 'proj_abc123',
  user_id: null,
  runtime_type: 'node',
  state: 'running',
  cwd: '/workspace/proj_abc123',
  created_at: AT,
  expires_at: '2026-01-01T12:30:00.000Z',
  expires_soon: false,
  network: [],
  limits: { cpus: 1, memory_mb: 2048, disk_mb: 512, processes: 64 },
  workspace_storage: 'volume',
  default_command: 'npm test',
  isolation: { ...EXECUTE_REPLY_EXAMPLE.receipt.isolation, walls: 'runtime' },
};

export const SESSION_DETAIL_EXAMPLE: SessionDetailReply = {
  ...SESSION_EXAMPLE,
  usage: {
    cpu_time_ms: 812.5,
    memory_bytes: 41_943_040,
    processes: 3,
    disk_bytes: 1_048_576,
    running: [EXEC_ID],
  },
};

export const EXEC_EXAMPLES = {
  reply: {
    summary: 'one command, one reply',
    value: { command: 'npm test', timeout_s: 600, reset_cwd: false, env: { NODE_ENV: 'test' } },
  },
  stream: { summary: 'its output as it comes', value: { command: 'npm test', stream: true } },
  background: {
    summary: 'a server that goes on running',
    value: { command: 'npm run dev', background: true },
  },
} as const;

const EXEC_RESULT_EXAMPLE: ExecResult = {
  exec_id: EXEC_ID,
  ok: true,
  exit_code: 0,
  cwd: '/workspace/proj_abc123',
  cwd_note: null,
  duration_ms: 1234,
  end: { reason: 'exit', message: 'it ended by itself', signal: null, killed_by: null },
  limits_reached: [],
  cpu_time_ms: 900,
  peak_memory_bytes: 52_428_800,
  stdout_bytes: 9,
  stderr_bytes: 0,
  egress_refused: [],
};

export const EXEC_REPLY_EXAMPLE: SessionExecReply = {
  ...EXEC_RESULT_EXAMPLE,
  stdout: 'PASS ...\n',
  stderr: '',
  output_cut_bytes: 0,
};

export const BACKGROUND_EXAMPLE = { exec_id: EXEC_ID, state: 'running' } as const;

export const EXEC_STATE_EXAMPLE: ExecReply = {
  exec_id: EXEC_ID,
  command: 'npm test',
  background: false,
  terminal: false,
  started_at: AT,
  output_bytes: 9,
  state: 'ended',
  result: EXEC_RESULT_EXAMPLE,
};

const { exit_code, cwd, duration_ms, ...REST_OF_RESULT } = EXEC_RESULT_EXAMPLE;

export const EVENTS_EXAMPLE = [
  `event: start\ndata: {"exec_id":"${EXEC_ID}","from":0}\nid: 0\n\n`,
  'event: stdout\ndata: PASS ...\ndata: \nid: 9\n\n',
  `event: exit\ndata: ${JSON.stringify({ exit_code, cwd, duration_ms, ...REST_OF_RESULT })}\nid: 9\n\n`,
].join('');

export const OUTPUT_EXAMPLE: OutputReply = {
  from: 0,
  next: 9,
  chunks: [{ stream: 'stdout', from: 0, data: 'PASS ...\n' }],
  cut: [],
  result: EXEC_RESULT_EXAMPLE,
};

export const UPLOAD_EXAMPLES = {
  files: {
    summary: 'two files, one of them binary',
    value: {
      files: [
        { path: 'src/main.ts', content: "console.log('hello');\n" },
        { path: 'logo.bin', content: 'AP8=', encoding: 'base64', mode: '644' },
      ],
    },
  },
} as const;

const HASH = '5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03';

export const SYNC_EXAMPLES = {
  manifest: {
    summary: 'first the hashes',
    value: { files: [{ path: 'src/main.ts', hash: HASH }] },
  },
  content: {
    summary: 'then the content of what is needed',
    value: { files: [{ path: 'src/main.ts', hash: HASH, content: 'hello\n' }] },
  },
} as const;

export const SYNC_REPLY_EXAMPLE: SyncReply = { synced: 0, skipped: 0, deleted: 0, needed: ['src/main.ts'] };

export const CHANGES_EXAMPLE: ChangesReply = {
  cursor: '17',
  changes: [{ path: 'dist/main.js', change: 'added', size: 512, mode: 0o644 }],
};

export const FS_EXAMPLE: FsReply = {
  kind: 'file',
  path: 'src/main.ts',
  content: "console.log('hello');\n",
  encoding: 'utf8',
  size: 22,
  mode: 0o644,
};

export const PATCH_EXAMPLES = {
  diff: {
    summary: 'a unified diff',
    value: {
      diff: "--- a/src/main.ts\n+++ b/src/main.ts\n@@ -1 +1 @@\n-console.log('hello');\n+console.log('hi');\n",
    },
  },
} as const;

export const PATCH_REPLY_EXAMPLE: ApplyPatchReply = {
  success: true,
  results: [{ path: 'src/main.ts', status: 'applied' }],
};

export const EGRESS_REQUEST_EXAMPLES = {
  list: { summary: 'npm and one host', value: { allow: ['npm', 'api.example.org'] } },
} as const;

export const EGRESS_EXAMPLE: EgressReply = {
  enabled: true,
  allow: ['api.example.org'],
  hosts: ['api.example.org'],
  allowed_count: 2,
  refused_count: 1,
  refusals: [
    { at: AT, host: 'evil.example', port: 443, reason: 'this host is not on the list', code: 'not_allowed' },
  ],
};
