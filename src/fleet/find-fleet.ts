import { relative } from 'node:path';
import type { FleetConfig } from './fleet-config.ts';
import type { FleetSurroundings } from './fleet-machine.ts';
import { HostGit } from './git/host-git.ts';
import { fleetPaths, type FleetPaths } from './names.ts';
import { readFleetConfig } from './read-fleet-config.ts';
import { findFeature } from './state/features.ts';

/** A feature in a repository, as every command of the fleet finds it. */
export interface FoundFleet {
  readonly git: HostGit;
  readonly paths: FleetPaths;
  readonly config: FleetConfig;
  /** For people: keys of the configuration that mean nothing here. */
  readonly notes: readonly string[];
}

export async function findFleet(
  folder: string,
  feature: string | undefined,
  { env, drivers }: FleetSurroundings,
): Promise<FoundFleet> {
  const git = await HostGit.open(folder, env);
  const name = findFeature(git.root, { named: feature, variable: env['MAHABHARATHA_FEATURE'] });
  const paths = fleetPaths(git.root, name);
  const { config, unknown } = await readFleetConfig(paths.config, drivers);
  const notes =
    unknown.length === 0
      ? []
      : [`${relative(git.root, paths.config)}: these keys mean nothing here: ${unknown.join(', ')}`];
  return { git, paths, config, notes };
}
