import type { Isolation } from '../core/cell.ts';
import type { SessionReply } from '../wire/sessions.ts';
import { toWorkspacePath } from './exec-plan.ts';
import { toIsoTime } from './iso-time.ts';
import type { SessionFacts } from './session-rows.ts';
import { TEMPLATES } from './templates.ts';

const MiB = 1024 * 1024;
const SOON_MS = 60_000;

interface SessionView {
  readonly id: string;
  readonly facts: SessionFacts;
  readonly isPaused: boolean;
  readonly cwd: string;
  readonly now: number;
  readonly expiresAt: number;
  readonly network: readonly string[];
  readonly isolation: Isolation;
}

export function toSessionReply(view: SessionView): SessionReply {
  const { facts, isolation } = view;
  const { limits } = facts;
  const leftMs = view.expiresAt - view.now;
  return {
    session_id: view.id,
    workspace_path: toWorkspacePath(facts.project),
    project_id: facts.project,
    user_id: facts.user,
    runtime_type: facts.runtime,
    state: view.isPaused ? 'paused' : 'running',
    cwd: view.cwd,
    created_at: toIsoTime(facts.createdAt),
    expires_at: toIsoTime(view.expiresAt),
    expires_soon: leftMs < SOON_MS || leftMs < facts.ttlMs / 10,
    network: [...view.network],
    limits: {
      cpus: limits.cpus,
      memory_mb: Math.floor(limits.memoryBytes / MiB),
      disk_mb: Math.floor(limits.diskBytes / MiB),
      processes: limits.processes,
    },
    workspace_storage: facts.volumeFolder === null ? 'memory' : 'volume',
    default_command: TEMPLATES[facts.runtime].defaultCommand,
    isolation: { driver: isolation.driver, runtime: isolation.runtime, enforcement: isolation.enforcement },
  };
}
