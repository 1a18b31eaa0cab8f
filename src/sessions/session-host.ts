import type { EndReason } from '../core/session-words.ts';
import type { SessionCounters } from './session-stats.ts';
import type { SessionStore } from './session-store.ts';
import type { SessionsOptions } from './sessions-options.ts';

/** What a session needs of those who keep all of them. */
export interface SessionHost {
  readonly options: SessionsOptions;
  readonly store: SessionStore;
  readonly counters: SessionCounters;
  /** Where the output of the session's commands is. */
  outputFolderOf(sessionId: string): string;
  /** Throws SHUTTING_DOWN when nothing may begin any more. */
  requireOpen(): void;
  end(sessionId: string, reason: EndReason, message: string): Promise<void>;
}
