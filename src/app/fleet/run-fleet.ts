import { homedir } from 'node:os';
import { relative } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import {
  collectCredentials,
  type CollectedCredentials,
} from '../../fleet/environment/collect-credentials.ts';
import { describeDropped, filterEnvironment } from '../../fleet/environment/variables.ts';
import type { FleetConfig } from '../../fleet/fleet-config.ts';
import type { FleetSite } from '../../fleet/fleet-site.ts';
import type { FleetState } from '../../fleet/fleet-state.ts';
import { HostGit } from '../../fleet/git/host-git.ts';
import { hideFolder } from '../../fleet/git/worktrees.ts';
import { readGraph } from '../../fleet/graph/read-graph.ts';
import { fleetPaths, type FleetPaths } from '../../fleet/names.ts';
import { beginState } from '../../fleet/run/begin.ts';
import type { FleetOutcome } from '../../fleet/run/fleet-run.ts';
import { ensureFeatureBranch } from '../../fleet/run/merge-level.ts';
import { Orchestrator } from '../../fleet/run/orchestrator.ts';
import { findFeature } from '../../fleet/state/features.ts';
import { takeOrchestrator } from '../../fleet/state/orchestrator-lock.ts';
import { StateStore } from '../../fleet/state/state-store.ts';
import type { TaskGraph } from '../../fleet/task-graph.ts';
import { AgentRun } from '../../fleet/worker/agent-run.ts';
import type { Config } from '../config/config.ts';
import { openFleetSite, reclaimFleetCells, type FleetWish } from './open-fleet.ts';
import { readFleetConfig } from './read-fleet-config.ts';

/** A feature in a repository, as every command of the fleet finds it. */
export interface FoundFleet {
  readonly git: HostGit;
  readonly paths: FleetPaths;
  readonly config: FleetConfig;
  /** For people: keys of the configuration that mean nothing here. */
  readonly notes: readonly string[];
}

export async function findFleet(folder: string, feature: string | undefined): Promise<FoundFleet> {
  const git = await HostGit.open(folder, process.env);
  const { feature: name } = findFeature(git.root, {
    named: feature,
    variable: process.env['MAHABHARATHA_FEATURE'],
  });
  const paths = fleetPaths(git.root, name);
  const { config, unknown } = await readFleetConfig(paths.config);
  const notes =
    unknown.length === 0
      ? []
      : [`${relative(git.root, paths.config)}: these keys mean nothing here: ${unknown.join(', ')}`];
  return { git, paths, config, notes };
}

export interface FleetOrder {
  readonly folder: string;
  readonly feature: string | undefined;
  readonly graph: string | undefined;
  readonly workers: number | undefined;
  readonly mode: FleetWish['mode'] | undefined;
  readonly driver: FleetWish['driver'] | undefined;
  readonly autoBuild: boolean;
  readonly resume: boolean;
  readonly lastLevel: number | undefined;
  readonly signal: AbortSignal;
}

export interface FleetHooks {
  readonly log: Log;
  onProgress(text: string): void;
  /** For people, before anything begins. */
  onNote(text: string): void;
  onEvent(event: string, data: Readonly<Record<string, unknown>>): void;
}

export interface PreparedFleet extends FoundFleet {
  readonly graph: TaskGraph;
  readonly graphPath: string;
  readonly warnings: readonly string[];
  readonly workers: number;
}

/** Everything that can be wrong with the order, before anything is touched. */
export async function prepareFleet(
  order: Pick<FleetOrder, 'folder' | 'feature' | 'graph' | 'workers'>,
): Promise<PreparedFleet> {
  const found = await findFleet(order.folder, order.feature);
  const { graph, path, warnings } = await readGraph(found.git.root, found.paths.feature, order.graph);
  const workers = order.workers ?? found.config.workers.max_concurrent;
  return { ...found, graph, graphPath: path, warnings, workers };
}

export function toFleetWish(
  order: Pick<FleetOrder, 'mode' | 'driver' | 'autoBuild'>,
  { workers }: FleetConfig,
): FleetWish {
  return {
    mode: order.mode ?? workers.launcher_type,
    driver: order.driver ?? workers.driver,
    autoBuild: order.autoBuild,
  };
}

export interface FleetResult {
  readonly outcome: FleetOutcome;
  readonly state: FleetState;
  readonly prepared: PreparedFleet;
}

/** `run` and `resume`. */
export async function runFleet(settings: Config, order: FleetOrder, hooks: FleetHooks): Promise<FleetResult> {
  const prepared = await prepareFleet(order);
  const { git, paths, config, graph } = prepared;
  for (const note of [...prepared.notes, ...prepared.warnings]) hooks.onNote(note);
  await hideFolder(paths.home);
  const store = new StateStore(paths, { onWarning: (text) => hooks.onNote(text) });
  // Before anything else: what a living orchestrator has must not be touched.
  using hold = takeOrchestrator(paths);
  hooks.onNote(`feature ${paths.feature}, process ${hold.record.pid}`);
  const credentials = await requireCredentials(config, git.root, hooks);
  const { kept, dropped } = filterEnvironment(process.env, {
    allow: config.environment.allow,
    credentials: [config.credentials.api_key_variable],
  });
  const saying = describeDropped(dropped);
  if (saying !== undefined) hooks.onNote(saying);
  const site = await openFleetSite(settings, config, toFleetWish(order, config), hooks);
  try {
    hooks.onNote(describeSite(site));
    // Whoever began may have had cells of another kind.
    if (order.resume) await reclaimFleetCells(settings, hooks.log);
    else await site.reclaim();
    const { mode, reason } = site;
    const graphPath = relative(git.root, prepared.graphPath);
    const state = await beginState({
      paths,
      graph,
      graphPath,
      git,
      store,
      mode,
      reason,
      resume: order.resume,
    });
    await ensureFeatureBranch(git, paths.feature, state.base_commit ?? 'HEAD');
    const agent = new AgentRun({ paths, config, site, credentials });
    const orchestrator = new Orchestrator({
      paths,
      graph,
      config,
      site,
      git,
      store,
      agent,
      credentials,
      workers: prepared.workers,
      variables: kept,
      lastLevel: order.lastLevel,
      signal: order.signal,
      onEvent: (event, data) => hooks.onEvent(event, data),
    });
    const outcome = await orchestrator.lead();
    return { outcome, state: store.require(), prepared };
  } finally {
    await site.close();
  }
}

export function describeSite({
  mode,
  driver,
  runtime,
  reason,
}: Pick<FleetSite, 'mode' | 'driver' | 'runtime' | 'reason'>): string {
  const walls =
    mode !== 'container'
      ? 'NO WALLS: workers are plain processes of this machine'
      : `cells of ${driver.name}, ${runtime}`;
  return `mode ${mode} (${reason}): ${walls}`;
}

/** An agent of one's own may need none: only the usual one is known to. */
async function requireCredentials(
  config: FleetConfig,
  root: string,
  hooks: FleetHooks,
): Promise<CollectedCredentials> {
  const credentials = await collectCredentials(config.credentials, {
    env: process.env,
    home: homedir(),
    root,
  });
  const [missing] = credentials.missing;
  if (missing !== undefined && config.agent.command === 'claude')
    throw new HotcellError('INVALID_REQUEST', `the agent has no credentials: ${missing.what} is missing`, {
      hint: missing.hint,
    });
  if (credentials.found.length > 0)
    hooks.onNote(`credentials for the agent: ${credentials.found.join(', ')}`);
  return credentials;
}
