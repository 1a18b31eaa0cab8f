import type { SessionStats } from '../../sessions/session-stats.ts';
import type { MetricsReply } from '../../wire/metrics.ts';

export const NO_SESSION_STATS: SessionStats = {
  open: 0,
  paused: 0,
  created: 0,
  adopted: 0,
  ended: {},
  runningExecs: 0,
  waitingExecs: 0,
  execs: {},
  outputBytes: 0,
  uploads: 0,
  syncs: 0,
  egressRefusals: 0,
};

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

interface Sample {
  readonly labels: Record<string, string>;
  readonly value: number;
}

interface SessionMetric {
  readonly name: string;
  readonly help: string;
  readonly kind: 'gauge' | 'counter';
  readonly samplesOf: (stats: SessionStats) => readonly Sample[];
}

const one = (value: number): readonly Sample[] => [{ labels: {}, value }];
const byReason = (counts: Readonly<Record<string, number>>): readonly Sample[] =>
  Object.entries(counts).map(([reason, value]) => ({ labels: { reason }, value }));

export const SESSION_METRICS: readonly SessionMetric[] = [
  {
    name: 'hotcell_sessions_open',
    help: 'Sessions, paused ones too',
    kind: 'gauge',
    samplesOf: ({ open }) => one(open),
  },
  {
    name: 'hotcell_sessions_paused',
    help: 'Sessions whose cell is frozen',
    kind: 'gauge',
    samplesOf: ({ paused }) => one(paused),
  },
  {
    name: 'hotcell_sessions_created_total',
    help: 'Sessions made',
    kind: 'counter',
    samplesOf: ({ created }) => one(created),
  },
  {
    name: 'hotcell_sessions_adopted_total',
    help: 'Sessions taken over from an earlier life of the server',
    kind: 'counter',
    samplesOf: ({ adopted }) => one(adopted),
  },
  {
    name: 'hotcell_sessions_ended_total',
    help: 'Sessions ended, by reason',
    kind: 'counter',
    samplesOf: ({ ended }) => byReason({ ...ended }),
  },
  {
    name: 'hotcell_execs_running',
    help: 'Commands of sessions under way',
    kind: 'gauge',
    samplesOf: ({ runningExecs }) => one(runningExecs),
  },
  {
    name: 'hotcell_execs_waiting',
    help: 'Commands that wait for another one of their session',
    kind: 'gauge',
    samplesOf: ({ waitingExecs }) => one(waitingExecs),
  },
  {
    name: 'hotcell_execs_ended_total',
    help: 'Commands of sessions ended, by reason',
    kind: 'counter',
    samplesOf: ({ execs }) => byReason({ ...execs }),
  },
  {
    name: 'hotcell_exec_output_bytes_total',
    help: 'Output of commands, also of what was cut',
    kind: 'counter',
    samplesOf: ({ outputBytes }) => one(outputBytes),
  },
  {
    name: 'hotcell_uploads_total',
    help: 'Uploads into sessions',
    kind: 'counter',
    samplesOf: ({ uploads }) => one(uploads),
  },
  {
    name: 'hotcell_syncs_total',
    help: 'Synchronisations of workspaces',
    kind: 'counter',
    samplesOf: ({ syncs }) => one(syncs),
  },
  {
    name: 'hotcell_egress_refused_total',
    help: 'Connections of sessions that were refused',
    kind: 'counter',
    samplesOf: ({ egressRefusals }) => one(egressRefusals),
  },
];
