import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FleetState } from '../fleet-state.ts';
import { fleetPaths, type FleetPaths } from '../names.ts';
import { toStatusJson } from '../status/status-json.ts';
import { toStatusView } from '../status/status-view.ts';
import { listFeatures } from './features.ts';
import { notePlanning, readPlanning } from './planning-figures.ts';
import { StateStore } from './state-store.ts';

const PLAN = { turns: 2, tool_calls: 1, input_tokens: 1000, output_tokens: 100, cost_usd: 0.25 };
const BOTH = { turns: 4, tool_calls: 2, input_tokens: 2000, output_tokens: 200, cost_usd: 0.5 };
let root = '';
let paths: FleetPaths;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-planning-'));
  paths = fleetPaths(root, 'shop');
});
afterEach(() => rmSync(root, { recursive: true }));

test('[FL-06, FL-15] what planning costs is summed before there is a state, and is none itself', () => {
  expect(readPlanning(paths)).toBeUndefined();
  notePlanning(paths, PLAN);
  expect(readPlanning(paths)).toEqual(PLAN);
  notePlanning(paths, PLAN);
  expect(readPlanning(paths)).toEqual(BOTH);
  expect(listFeatures(root)).toEqual([]);
  // Half a file is nothing, and the next answer counts all the same.
  writeFileSync(paths.planning, '{"turns":');
  expect(readPlanning(paths)).toBeUndefined();
  notePlanning(paths, PLAN);
  expect(readPlanning(paths)).toEqual(PLAN);
});

test('[FL-06, FL-15] it counts for the feature, and for no task and no level', () => {
  const store = new StateStore(paths);
  const task = { status: 'complete' as const, level: 1, retry_count: 0, agent: PLAN };
  const started_at = '2026-01-01T00:00:00.000Z';
  store.create(FleetState.parse({ feature: 'shop', started_at, tasks: { A: task } }));
  notePlanning(paths, BOTH);
  const state = store.require();
  expect(state.planning).toEqual(BOTH);
  const view = toStatusView({ state, graph: undefined, orchestrator: undefined, now: new Date(started_at) });
  expect(view.agent).toMatchObject({ turns: 6, cost_usd: 0.75 });
  expect(view.levels[0]?.agent).toEqual(PLAN);
  expect(toStatusJson(state, view)).toMatchObject({ planning_agent: BOTH, agent: { input_tokens: 3000 } });
});
