import type { Limits } from '../core/limits.ts';
import type { ExecRows } from './exec-rows.ts';
import type { SessionCounters } from './session-stats.ts';
import type { SessionsOptions } from './sessions-options.ts';

/** What a command needs of the session it belongs to. */
export interface ExecSurroundings extends Pick<SessionsOptions, 'clock' | 'settings' | 'log'> {
  readonly rows: ExecRows;
  readonly counters: SessionCounters;
  readonly limits: Limits;
  /** Where the output of the session's commands is. */
  readonly outputFolder: string;
  /** Why a cell that is lost was lost, as far as one can tell. */
  lostReason(): 'cell_lost' | 'memory';
  /** Throws SESSION_PAUSED: what is frozen hears nothing. */
  requireAwake(): void;
  /** A command or a viewer of it showed a sign of life. */
  onLife(): void;
}
