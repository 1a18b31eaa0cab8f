import { lstatSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import { parseJson } from '../../lib/parse-json.ts';
import { fleetPaths, requireFeatureName } from '../names.ts';

const GRAPH = 'task-graph.json';

/**
 * The feature that is meant: the one named, that of the variable MAHABHARATHA_FEATURE, of `.gsd/.current-feature`, the
 * one whose state changed last, or the only one that has a task graph. Throws FLEET_UNKNOWN when nothing names one.
 */
export function findFeature(
  root: string,
  wish: { readonly named?: string | undefined; readonly variable?: string | undefined },
): string {
  const variable = wish.variable === '' ? undefined : wish.variable;
  const chosen = wish.named ?? variable ?? readCurrentFeature(root);
  if (chosen !== undefined) return requireFeatureName(chosen);
  const [newest] = listFeatures(root);
  if (newest !== undefined) return newest;
  const designed = listDesigned(root);
  const [only] = designed;
  if (only !== undefined && designed.length === 1) return only;
  throw new HotcellError('FLEET_UNKNOWN', `no feature is being worked on in ${root}`, {
    hint:
      only === undefined
        ? 'Name one with --feature, or begin one with hotcell fleet plan NAME.'
        : `Name one with --feature: there are task graphs of ${designed.join(', ')}.`,
  });
}

/** Features with a task graph in one of the usual places, by the name of its folder or by what it says itself. */
function listDesigned(root: string): string[] {
  const inFolders = ['.gsd/specs', '.gsd/tasks'].flatMap((folder) =>
    namesIn(join(root, folder)).filter((name) => isFile(join(root, folder, name, GRAPH))),
  );
  const named = [join(root, '.gsd/tasks', GRAPH), join(root, GRAPH)].flatMap((file) => {
    const graph = isFile(file) ? parseJson(readFileSync(file, 'utf8')) : undefined;
    const isNamed = typeof graph === 'object' && graph !== null && 'feature' in graph;
    return isNamed && typeof graph.feature === 'string' ? [graph.feature] : [];
  });
  return [...new Set([...inFolders, ...named])].filter(isFeatureName).toSorted();
}

function isFile(path: string): boolean {
  try {
    return lstatSync(path).isFile();
  } catch {
    return false;
  }
}

export function isFeatureName(name: string): boolean {
  try {
    return requireFeatureName(name) === name;
  } catch {
    return false;
  }
}

function readCurrentFeature(root: string): string | undefined {
  try {
    const name = readFileSync(join(root, '.gsd/.current-feature'), 'utf8').trim();
    return name === '' ? undefined : name;
  } catch {
    return undefined;
  }
}

/** All features that have a state, the one that changed last first. */
export function listFeatures(root: string): string[] {
  const folder = join(root, '.mahabharatha/state');
  return namesIn(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => ({ feature: name.slice(0, -'.json'.length), file: join(folder, name) }))
    .filter(({ feature, file }) => isStateOf(feature, file))
    .map(({ feature, file }) => ({ feature, time: timeOf(file) }))
    .toSorted((one, other) => other.time - one.time || (one.feature < other.feature ? -1 : 1))
    .map(({ feature }) => feature);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Records and heartbeats stand beside the states; only a state says which feature it is of. */
function isStateOf(feature: string, file: string): boolean {
  try {
    const paths = fleetPaths('/', feature);
    const state: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return (
      typeof state === 'object' && state !== null && 'feature' in state && state.feature === paths.feature
    );
  } catch {
    return false;
  }
}

function timeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
