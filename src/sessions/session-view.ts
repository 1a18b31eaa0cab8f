import type { SessionView } from './api.ts';
import { toWorkspacePath } from './exec-plan.ts';
import type { SessionFacts } from './stored-session.ts';
import { TEMPLATES } from './templates.ts';

const SOON_MS = 60_000;

/** What changes about a session, and what its facts do not tell. */
type Seen = Pick<SessionView, 'id' | 'state' | 'cwd' | 'expiresAt' | 'network' | 'isolation'>;

export function toSessionView(facts: SessionFacts, seen: Seen, now: number): SessionView {
  const { project, user, runtime, createdAt } = facts;
  const { cpus, memoryBytes, diskBytes, processes } = facts.limits;
  const leftMs = seen.expiresAt - now;
  return {
    ...seen,
    project,
    user,
    runtime,
    workspace: toWorkspacePath(project),
    createdAt,
    expiresSoon: leftMs < SOON_MS || leftMs < facts.ttlMs / 10,
    limits: { cpus, memoryBytes, diskBytes, processes },
    storage: facts.volumeFolder === null ? 'memory' : 'volume',
    defaultCommand: TEMPLATES[runtime].defaultCommand,
  };
}
