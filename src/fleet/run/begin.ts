import { relative } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import type { FleetSite } from '../fleet-site.ts';
import type { FleetState } from '../fleet-state.ts';
import { beginLeading } from '../state/led-time.ts';
import { readPlanning } from '../state/planning-figures.ts';
import { appendEvent, type StateStore } from '../state/state-store.ts';
import type { TaskGraph } from '../task-graph.ts';
import type { PreparedFleet } from './fleet-run.ts';
import { findAllTaken } from './recover.ts';
import { requeueActive } from './task-changes.ts';
import type { WorktreeBound } from './worktree-bound.ts';

export interface Begin extends PreparedFleet {
  readonly store: StateStore;
  readonly site: Pick<FleetSite, 'mode' | 'reason'>;
  readonly bound: WorktreeBound;
  /** Go on with what there is. */
  readonly resume: boolean;
}

/** The state of a first start, or that of an earlier one, made ready to go on. Precondition: no other orchestrator lives. */
export async function beginState(begin: Begin): Promise<FleetState> {
  const { store, paths, site } = begin;
  const before = store.read();
  if (before === undefined) return store.create(await toFirstState(begin));
  if (!begin.resume)
    throw new HotcellError(
      'INVALID_REQUEST',
      `feature ${paths.feature} was begun before, at ${before.started_at}`,
      {
        hint: `Go on with hotcell fleet resume --feature ${paths.feature}, or clear it away with hotcell fleet cleanup --feature ${paths.feature}.`,
      },
    );
  const taken = await findAllTaken(begin.git, before);
  const fresh = (before.base_commit ?? undefined) === undefined ? await toFirstState(begin) : undefined;
  return store.update((state) => {
    const time = new Date().toISOString();
    for (const change of taken) change(state, time);
    requeueActive(state, time);
    beginLeading(state, time);
    addTasks(state, begin.graph, time);
    for (const worker of Object.values(state.workers))
      Object.assign(worker, {
        status: 'stopped',
        current_task: null,
        container_id: null,
        stop_requested: false,
      });
    Object.assign(state, { paused: false, error: null, finished_at: null, ...toModeFields(begin) });
    Object.assign(state, toPlanningFields(begin));
    state.asked_workers = begin.askedWorkers ?? null;
    // A state that another program began knows no base.
    if (fresh !== undefined)
      Object.assign(state, { base_commit: fresh.base_commit, target_branch: fresh.target_branch });
    appendEvent(state, 'rush_resumed', { mode: site.mode });
    return structuredClone(state);
  });
}

async function toFirstState({
  paths,
  graph,
  graphPath,
  git,
  site,
  askedWorkers,
  config,
  bound,
}: Begin): Promise<FleetState> {
  const time = new Date().toISOString();
  const base = await git.run(['rev-parse', '--verify', 'HEAD^{commit}']);
  // A detached HEAD has no name; `merge` then has to be told where to.
  const { stdout: branch } = await git.attempt(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  const state: FleetState = {
    feature: paths.feature,
    started_at: time,
    current_level: 0,
    tasks: {},
    workers: {},
    levels: {},
    execution_log: [],
    paused: false,
    error: null,
    ...toModeFields({ site, config, bound }),
    ...toPlanningFields({ paths }),
    base_commit: base,
    target_branch: branch.trim() === '' ? null : branch.trim(),
    task_graph: relative(git.root, graphPath),
    asked_workers: askedWorkers ?? null,
    led_ms: 0,
    led_since: time,
    led_until: time,
  };
  addTasks(state, graph, time);
  appendEvent(state, 'rush_started', { mode: site.mode, base });
  return state;
}

/** How workers are run this time. */
function toModeFields({
  site,
  config,
  bound,
}: Pick<Begin, 'site' | 'config' | 'bound'>): Partial<FleetState> {
  return {
    mode: site.mode,
    mode_reason: site.reason,
    worktree_bytes: config.resources.worktree_disk,
    worktree_bound: bound.kind,
  };
}

function toPlanningFields({ paths }: Pick<Begin, 'paths'>): Partial<FleetState> {
  const planning = readPlanning(paths);
  return planning === undefined ? {} : { planning: { ...planning } };
}

/** Also what was added to the graph since. */
function addTasks(state: FleetState, { tasks }: TaskGraph, time: string): void {
  for (const { id, level } of tasks) {
    const before = state.tasks[id];
    state.tasks[id] =
      before === undefined
        ? { status: 'pending', level, retry_count: 0, updated_at: time }
        : { ...before, level };
    state.levels[String(level)] ??= { status: 'pending' };
    // A level to which something was added is not complete any more.
    if (before === undefined && state.levels[String(level)]?.status === 'complete')
      state.levels[String(level)] = { ...state.levels[String(level)], status: 'pending' };
  }
}
