import type { Clock } from '../core/clock.ts';
import type { Limits } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import type { ExecRows } from './exec-rows.ts';
import type { SessionCounters } from './session-stats.ts';
import type { SessionSettings } from './settings.ts';

/** What a command needs of the session it belongs to. */
export interface ExecSurroundings {
  readonly rows: ExecRows;
  readonly clock: Clock;
  readonly settings: SessionSettings;
  readonly counters: SessionCounters;
  readonly log: Log;
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
