import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import { fleetPaths, requireFeatureName } from '../names.ts';

/**
 * The feature that is meant: the one named, that of the variable MAHABHARATHA_FEATURE, of `.gsd/.current-feature`, or the
 * one whose state changed last. Throws FLEET_UNKNOWN when nothing names one.
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
  throw new HotcellError('FLEET_UNKNOWN', `no feature is being worked on in ${root}`, {
    hint: 'Name one with --feature, or begin one with hotcell fleet plan NAME.',
  });
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
