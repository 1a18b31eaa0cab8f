import type { Isolation } from '../core/cell.ts';
import type { SessionView } from './api.ts';
import { toWorkspacePath } from './exec-plan.ts';
import type { SessionFacts } from './stored-session.ts';
import { TEMPLATES } from './templates.ts';

const SOON_MS = 60_000;

interface Seen {
  readonly id: string;
  readonly facts: SessionFacts;
  readonly isPaused: boolean;
  readonly cwd: string;
  readonly now: number;
  readonly expiresAt: number;
  readonly network: readonly string[];
  readonly isolation: Isolation;
}

export function toSessionView(seen: Seen): SessionView {
  const { id, cwd, expiresAt, facts, isolation, network } = seen;
  const { project, user, runtime, createdAt } = facts;
  const { cpus, memoryBytes, diskBytes, processes } = facts.limits;
  const leftMs = expiresAt - seen.now;
  return {
    id,
    project,
    user,
    runtime,
    state: seen.isPaused ? 'paused' : 'running',
    workspace: toWorkspacePath(project),
    cwd,
    createdAt,
    expiresAt,
    expiresSoon: leftMs < SOON_MS || leftMs < facts.ttlMs / 10,
    network,
    limits: { cpus, memoryBytes, diskBytes, processes },
    storage: facts.volumeFolder === null ? 'memory' : 'volume',
    defaultCommand: TEMPLATES[runtime].defaultCommand,
    isolation,
  };
}
