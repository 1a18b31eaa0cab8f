import { SessionCounters, type SessionStats } from '../../sessions/session-stats.ts';
import type { MetricsReply } from '../../wire/metrics.ts';

const NOTHING_NOW = { open: 0, paused: 0, runningExecs: 0, waitingExecs: 0 };
export const NO_SESSION_STATS = new SessionCounters().toStats(NOTHING_NOW);

/** The figures of sessions as the JSON view has them. */
export function toSessionsView(
  stats: SessionStats,
): Pick<MetricsReply, 'sessions' | 'execs' | 'uploads_total' | 'syncs_total' | 'egress_refused_total'> {
  return {
    sessions: {
      open: stats.open,
      paused: stats.paused,
      created_total: stats.created,
      adopted_total: stats.adopted,
      ended_total: { ...stats.ended },
    },
    execs: {
      running: stats.runningExecs,
      waiting: stats.waitingExecs,
      ended_total: { ...stats.execs },
      output_bytes_total: stats.outputBytes,
    },
    uploads_total: stats.uploads,
    syncs_total: stats.syncs,
    egress_refused_total: stats.egressRefusals,
  };
}

/** What ends with `_total` only grows. Of a table of counts, Prometheus gets one figure for each reason. */
export const SESSION_METRICS: readonly (readonly [name: string, of: keyof SessionStats, help: string])[] = [
  ['hotcell_sessions_open', 'open', 'Sessions, paused ones too'],
  ['hotcell_sessions_paused', 'paused', 'Sessions whose cell is frozen'],
  ['hotcell_sessions_created_total', 'created', 'Sessions made'],
  ['hotcell_sessions_adopted_total', 'adopted', 'Sessions taken over from an earlier life of the server'],
  ['hotcell_sessions_ended_total', 'ended', 'Sessions ended, by reason'],
  ['hotcell_execs_running', 'runningExecs', 'Commands of sessions under way'],
  ['hotcell_execs_waiting', 'waitingExecs', 'Commands that wait for another one of their session'],
  ['hotcell_execs_ended_total', 'execs', 'Commands of sessions ended, by reason'],
  ['hotcell_exec_output_bytes_total', 'outputBytes', 'Output of commands, also of what was cut'],
  ['hotcell_uploads_total', 'uploads', 'Uploads into sessions'],
  ['hotcell_syncs_total', 'syncs', 'Synchronisations of workspaces'],
  ['hotcell_egress_refused_total', 'egressRefusals', 'Connections of sessions that were refused'],
];
