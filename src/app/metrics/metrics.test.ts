import { expect, test } from 'vitest';
import type { RunResult } from '../../runs/run.ts';
import type { SessionStats } from '../../sessions/session-stats.ts';
import { MetricsReply } from '../../wire/metrics.ts';
import { Metrics } from './metrics.ts';
import { NO_SESSION_STATS } from './session-metrics.ts';

function makeMetrics() {
  const load = { running: 0, waiting: 0 };
  const ready = [{ language: 'python', cells: 0 }];
  const sessions: { stats: SessionStats } = { stats: NO_SESSION_STATS };
  const gauges = { load: () => load, ready: () => ready, sessionStats: () => sessions.stats };
  return { metrics: new Metrics(gauges), load, ready, sessions };
}

/** As much of a result as is counted. */
function resultOf(changes: Partial<RunResult>): RunResult {
  const outcome = { kind: 'exited', code: 0 };
  return {
    language: 'python',
    outcome,
    limitHit: undefined,
    warm: true,
    wallTimeMs: 40,
    ...changes,
  } as RunResult;
}

test.each([
  'hotcell_runs_total',
  'hotcell_run_seconds',
  'hotcell_runs_running',
  'hotcell_runs_waiting',
  'hotcell_cells_ready',
  'hotcell_resident_memory_bytes',
  'hotcell_sessions_open',
  'hotcell_sessions_paused',
  'hotcell_sessions_created_total',
  'hotcell_sessions_adopted_total',
  'hotcell_sessions_ended_total',
  'hotcell_execs_running',
  'hotcell_execs_waiting',
  'hotcell_uploads_total',
  'hotcell_syncs_total',
  'hotcell_execs_ended_total',
  'hotcell_exec_output_bytes_total',
  'hotcell_egress_refused_total',
])('%s is there and explained', async (name) => {
  const text = await makeMetrics().metrics.text();
  expect(text).toMatch(new RegExp(`^# HELP ${name} .+`, 'm'));
  expect(text).toMatch(new RegExp(`^# TYPE ${name} (counter|gauge|histogram)$`, 'm'));
});

test('runs are counted by language, outcome, limit and warmth', async () => {
  const { metrics } = makeMetrics();
  metrics.count(resultOf({}));
  metrics.count(resultOf({}));
  metrics.count(
    resultOf({ outcome: { kind: 'limit', limit: 'wallTimeMs' }, limitHit: 'wallTimeMs', warm: false }),
  );
  const lines = (await metrics.text()).split('\n');
  expect(lines).toContain(
    'hotcell_runs_total{language="python",outcome="exited",limit="none",warm="true"} 2',
  );
  expect(lines).toContain(
    'hotcell_runs_total{language="python",outcome="limit",limit="wallTimeMs",warm="false"} 1',
  );
});

test('times are in seconds', async () => {
  const { metrics } = makeMetrics();
  metrics.count(resultOf({ wallTimeMs: 40 }));
  expect(await metrics.text()).toContain('hotcell_run_seconds_sum{language="python"} 0.04');
});

test('gauges are read when somebody asks', async () => {
  const { metrics, load, ready } = makeMetrics();
  expect(await metrics.text()).toMatch(/^hotcell_runs_running 0$/m);
  Object.assign(load, { running: 3, waiting: 5 });
  ready[0] = { language: 'python', cells: 4 };
  const text = await metrics.text();
  expect(text).toMatch(/^hotcell_runs_running 3$/m);
  expect(text).toMatch(/^hotcell_runs_waiting 5$/m);
  expect(text).toMatch(/^hotcell_cells_ready\{language="python"\} 4$/m);
});

const STATS: SessionStats = {
  open: 3,
  paused: 1,
  created: 10,
  adopted: 2,
  ended: { deleted: 6, expired: 1 },
  runningExecs: 4,
  waitingExecs: 7,
  execs: { exit: 40, timeout: 8 },
  outputBytes: 999,
  uploads: 11,
  syncs: 12,
  egressRefusals: 5,
};

test('[RS-18] sessions are counted by what they say, however often somebody asks', async () => {
  const { metrics, sessions } = makeMetrics();
  sessions.stats = STATS;
  await metrics.text();
  const lines = (await metrics.text()).split('\n');
  for (const line of [
    'hotcell_sessions_open 3',
    'hotcell_sessions_paused 1',
    'hotcell_sessions_created_total 10',
    'hotcell_sessions_adopted_total 2',
    'hotcell_sessions_ended_total{reason="deleted"} 6',
    'hotcell_sessions_ended_total{reason="expired"} 1',
    'hotcell_execs_running 4',
    'hotcell_execs_waiting 7',
    'hotcell_uploads_total 11',
    'hotcell_syncs_total 12',
    'hotcell_execs_ended_total{reason="exit"} 40',
    'hotcell_execs_ended_total{reason="timeout"} 8',
    'hotcell_exec_output_bytes_total 999',
    'hotcell_egress_refused_total 5',
  ]) {
    expect(lines).toContain(line);
  }
});

test('[RS-18] the JSON view has the same figures', () => {
  const { metrics, load, sessions } = makeMetrics();
  sessions.stats = STATS;
  Object.assign(load, { running: 3, waiting: 5 });
  metrics.count(resultOf({}));
  const view = metrics.view();
  expect(MetricsReply.parse(view)).toEqual(view);
  expect(view).toMatchObject({
    runs: { running: 3, waiting: 5, total: 1 },
    sessions: { open: 3, paused: 1, created_total: 10, adopted_total: 2, ended_total: { deleted: 6 } },
    execs: { running: 4, waiting: 7, ended_total: { exit: 40, timeout: 8 }, output_bytes_total: 999 },
    uploads_total: 11,
    syncs_total: 12,
    egress_refused_total: 5,
  });
  expect(Date.parse(view.started_at)).not.toBeNaN();
});
