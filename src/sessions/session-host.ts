import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { AuditEntry } from '../policy/audit-entry.ts';
import type { ExecSurroundings } from './exec-surroundings.ts';
import type { EndReason } from '../core/session-words.ts';
import type { SessionCounters } from './session-stats.ts';
import type { SessionStore } from './session-store.ts';
import type { Volumes } from './volumes.ts';

/** What a session needs of those who keep all of them. */
export interface SessionHost {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly volumes: Volumes;
  readonly counters: SessionCounters;
  /** Names of the rules that refuse commands. */
  readonly rules: readonly string[];
  /** What the commands of this session need of us. */
  around(sessionId: string): Omit<ExecSurroundings, 'limits' | 'lostReason' | 'requireAwake' | 'onLife'>;
  audit(entry: AuditEntry): void;
  /** Throws SHUTTING_DOWN when nothing may begin any more. */
  requireOpen(): void;
  end(sessionId: string, reason: EndReason, message: string): Promise<void>;
}
