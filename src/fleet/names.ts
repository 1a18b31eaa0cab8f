import { join } from 'node:path';
import { HotcellError } from '../core/errors.ts';

const FEATURE = /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/;
const LONGEST_FEATURE = 100;

/** SECURITY: a feature is part of paths and of branch names; this is the only door through which one comes in. */
export function requireFeatureName(name: string): string {
  if (
    FEATURE.test(name) &&
    name.length <= LONGEST_FEATURE &&
    !name.includes('..') &&
    !/\.(lock)?$/.test(name)
  )
    return name;
  throw new HotcellError('INVALID_REQUEST', `${JSON.stringify(name)} is no name for a feature`, {
    field: 'feature',
    hint: 'Use letters, digits, dot, hyphen and underscore, beginning with a letter or digit, at most 100.',
  });
}

/** Where everything of one feature is, below the root of the repository. */
export function fleetPaths(root: string, feature: string) {
  requireFeatureName(feature);
  const home = join(root, '.mahabharatha');
  const stateFolder = join(home, 'state');
  const ofState = (suffix: string): string => join(stateFolder, `${feature}${suffix}`);
  return {
    root,
    feature,
    /** Everything of ours that outlives a run. */
    home,
    config: join(home, 'config.yaml'),
    /** `<feature>.json` and what belongs to it. */
    stateFolder,
    state: ofState('.json'),
    /** Held for moments, around every change of the state. */
    stateLock: ofState('.lock'),
    /** Held by a living orchestrator, and who it is. */
    orchestratorLock: ofState('.orchestrator.lock'),
    orchestrator: ofState('.orchestrator.json'),
    /** One line for every event, for programs that follow along. */
    events: ofState('-events.jsonl'),
    /** What it has cost to plan and design it. */
    planning: ofState('-planning.json'),
    workerLogs: join(home, 'logs/workers'),
    /** What the tasks of this feature leave: other features may have tasks with the same ids. */
    featureLogs: join(home, 'logs/features', feature),
    /** Where earlier versions kept it, for all features alike. */
    sharedTaskLogs: join(home, 'logs/tasks'),
    checkResults: join(home, 'artifacts', feature),
    /** Git data and other private folders of the cells, one folder per worker. */
    cells: join(home, 'cells', feature),
    /** Images of bounded file systems, one per place. */
    volumes: join(home, 'cells', feature, 'volumes'),
    /** Dependencies that were installed once, by the hash of their manifests. */
    dependencies: join(home, 'cache/dependencies'),
    worktrees: join(root, '.mahabharatha-worktrees', feature),
    specs: join(root, '.gsd/specs', feature),
  } as const;
}

export type FleetPaths = ReturnType<typeof fleetPaths>;

/** The name of the cell, for people and for `docker ps`. */
export function workerName(worker: number): string {
  return `mahabharatha-worker-${worker}`;
}

export function workerBranch(feature: string, worker: number): string {
  return `mahabharatha/${feature}/worker-${worker}`;
}

/** The feature branch: what has been merged of all levels so far. Only `merge` carries it into the target. */
export function featureBranch(feature: string): string {
  return `mahabharatha/${feature}/staging`;
}

export function workerWorktree(paths: FleetPaths, worker: number): string {
  return join(paths.worktrees, `worker-${worker}`);
}

export function heartbeatFile(paths: FleetPaths, worker: number): string {
  return join(paths.stateFolder, `${paths.feature}-heartbeat-${worker}.json`);
}

export function workerLogFile(paths: FleetPaths, worker: number): string {
  return join(paths.workerLogs, `worker-${worker}.jsonl`);
}

/** SECURITY: `task` is an id that the graph has been checked for: no slash, no dots. */
export function taskFolder(paths: FleetPaths, task: string): string {
  return join(paths.featureLogs, 'tasks', task);
}

/** Of an earlier version. SECURITY: as `taskFolder`. */
export function sharedTaskFolder(paths: FleetPaths, task: string): string {
  return join(paths.sharedTaskLogs, task);
}
