import { expect, test } from 'vitest';
import type { RunResult } from '../runs/run.ts';
import { Metrics } from './metrics.ts';

function makeMetrics() {
  const load = { running: 0, waiting: 0 };
  const ready = [{ language: 'python', cells: 0 }];
  return { metrics: new Metrics({ load: () => load, ready: () => ready }), load, ready };
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
