import { join } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import { isClaudeCode } from '../agent/check-agent.ts';
import {
  collectCredentials,
  renewCredentials,
  type CollectedCredentials,
  type CredentialSources,
} from '../environment/collect-credentials.ts';
import { KnownSecrets } from '../environment/known-secrets.ts';
import { prepareAgent } from '../environment/prepare-agent.ts';
import { describeDropped } from '../environment/variables.ts';
import { findFleet } from '../find-fleet.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetMachine, FleetSurroundings, FleetWish, SiteHooks } from '../fleet-machine.ts';
import type { FleetSite } from '../fleet-site.ts';
import type { FleetState } from '../fleet-state.ts';
import { hideFolder } from '../git/worktrees.ts';
import { readGraph } from '../graph/read-graph.ts';
import { takeOrchestrator } from '../state/orchestrator-lock.ts';
import { StateStore } from '../state/state-store.ts';
import { AgentRun } from '../worker/agent-run.ts';
import type { WorktreeVolumes } from '../worktree-volumes.ts';
import { beginState } from './begin.ts';
import type { FleetOutcome, PreparedFleet } from './fleet-run.ts';
import { ensureFeatureBranch } from './merge-level.ts';
import { Orchestrator } from './orchestrator.ts';
import { levelsOf } from './schedule.ts';
import { describeBound, findBound } from './worktree-bound.ts';

/** What was asked for of the wish; the rest is up to the configuration. */
export type AskedSite = { readonly [Name in keyof FleetWish]?: FleetWish[Name] | undefined };

export interface FleetOrder extends AskedSite {
  readonly folder: string;
  readonly feature?: string | undefined;
  readonly taskGraph?: string | undefined;
  readonly workers?: number | undefined;
  readonly resume: boolean;
  /** No level after this one. */
  readonly level?: number | undefined;
  readonly signal: AbortSignal;
}

export interface FleetHooks extends SiteHooks {
  /** For people, before anything begins. */
  onNote(text: string): void;
  /** For those who want to know everything. */
  onDetail(text: string): void;
  onEvent(event: string, data: Readonly<Record<string, unknown>>): void;
}

/** Everything that can be wrong with the order, before anything is touched. */
export async function prepareFleet(
  order: Pick<FleetOrder, 'folder' | 'feature' | 'taskGraph' | 'workers'> & { readonly resume?: boolean },
  surroundings: FleetSurroundings,
): Promise<PreparedFleet> {
  const found = await findFleet(order.folder, order.feature, surroundings);
  const { graph, path, warnings } = await readGraph(found.git.root, found.paths.feature, order.taskGraph);
  const before = order.resume === true ? new StateStore(found.paths).read()?.asked_workers : undefined;
  const askedWorkers = order.workers ?? before ?? undefined;
  const workers = askedWorkers ?? found.config.workers.max_concurrent;
  return { ...found, graph, graphPath: path, warnings, workers, askedWorkers };
}

export function toFleetWish(
  { mode, driver, autoBuild = false }: AskedSite,
  { workers }: FleetConfig,
): FleetWish {
  return { mode: mode ?? workers.launcher_type, driver: driver ?? workers.driver, autoBuild };
}

export interface FleetResult {
  readonly outcome: FleetOutcome;
  readonly state: FleetState;
  readonly prepared: PreparedFleet;
}

/** `run` and `resume`. */
export async function runFleet(
  machine: FleetMachine,
  order: FleetOrder,
  hooks: FleetHooks,
): Promise<FleetResult> {
  const prepared = await prepareFleet(order, machine);
  const { git, paths, config } = prepared;
  for (const note of prepared.notes) hooks.onNote(note);
  await hideFolder(paths.home);
  const store = new StateStore(paths, { onWarning: (text) => hooks.onNote(text) });
  // Before anything else: what a living orchestrator has must not be touched.
  using hold = takeOrchestrator(paths);
  hooks.onNote(`feature ${paths.feature}, process ${hold.record.pid}`);
  const sources = { ...machine, root: git.root };
  const credentials = await requireCredentials(config, sources, hooks);
  const site = await machine.openSite(config, toFleetWish(order, config), hooks);
  let volumes: WorktreeVolumes | undefined;
  try {
    const bound = await findBound(machine, site, prepared);
    hooks.onNote(`${describeSite(site)}; ${describeBound(config, bound)}`);
    const { variables, dropped, warnings } = await prepareAgent(machine, {
      site,
      config,
      credentials,
      root: git.root,
    });
    for (const detail of [...prepared.warnings, ...describeDropped(dropped)]) hooks.onDetail(detail);
    for (const warning of warnings) hooks.onNote(warning);
    // Whoever began may have had cells of another kind.
    if (order.resume) await machine.reclaimCells(hooks.log);
    // Before the driver of this site makes anything: what is mounted is to be seen in its cells.
    await hideFolder(join(paths.worktrees, '..'));
    if (bound.kind === 'kernel')
      volumes = await machine.volumes.prepare({
        directory: paths.volumes,
        worktrees: paths.worktrees,
        log: hooks.log,
      });
    if (!order.resume) await site.reclaim();
    const state = await beginState({ ...prepared, store, site, bound, resume: order.resume });
    await ensureFeatureBranch(git, paths.feature, state.base_commit ?? 'HEAD');
    hooks.onNote(describeWork(prepared, state));
    hooks.onNote(
      `watch it with hotcell fleet status --watch, or hotcell fleet logs --follow (--feature ${paths.feature})`,
    );
    const secrets = new KnownSecrets();
    secrets.add(credentials.secrets);
    const readCredentials = () => renewCredentials(credentials, config.credentials, sources);
    const agent = new AgentRun({ paths, config, site, readCredentials });
    const orchestrator = new Orchestrator({
      ...prepared,
      site,
      store,
      agent,
      credentials,
      secrets,
      volumes,
      variables,
      lastLevel: order.level,
      signal: order.signal,
      onEvent: (event, data) => hooks.onEvent(event, data),
    });
    const outcome = await orchestrator.lead();
    return { outcome, state: store.require(), prepared };
  } finally {
    await volumes?.close();
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

/** Remarks on the graph are told where it is made and checked; here it is enough that there are some. */
function describeWork({ graph, warnings, workers }: PreparedFleet, { tasks }: FleetState): string {
  const done = graph.tasks.filter(({ id }) => tasks[id]?.status === 'complete').length;
  const parts = [
    `${count(graph.tasks.length, 'task')} in ${count(levelsOf(graph).length, 'level')}`,
    ...(done === 0 ? [] : [`${done} of them complete`]),
    count(workers, 'worker'),
    ...(warnings.length === 0
      ? []
      : [`${count(warnings.length, 'remark')} on the graph (hotcell fleet design --validate-only)`]),
  ];
  return parts.join(', ');
}

function count(number: number, what: string): string {
  return number === 1 ? `1 ${what}` : `${number} ${what}s`;
}

/** An agent of one's own may need none: only the usual one is known to, and whoever asks for the login. */
async function requireCredentials(
  config: FleetConfig,
  sources: CredentialSources,
  hooks: FleetHooks,
): Promise<CollectedCredentials> {
  const credentials = await collectCredentials(config.credentials, sources);
  const [missing] = credentials.missing;
  if (missing !== undefined && (isClaudeCode(config.agent) || config.credentials.oauth))
    throw new HotcellError('INVALID_REQUEST', `the agent has no credentials: ${missing.what} is missing`, {
      hint: missing.hint,
    });
  if (credentials.found.length > 0)
    hooks.onNote(`credentials for the agent: ${credentials.found.join(', ')}`);
  return credentials;
}
