import { engineHost, whyNoEngine } from './docker-engine.ts';
import { DOCKER, FleetCommand, OCI, SUBPROCESS } from './fleet-command.ts';
import type { FleetRepository } from './fleet-repository.ts';
import { whyNotOci } from './needs.ts';
import { ociOptions } from './package-site.ts';
import { makeStateDirectory, removeFolders } from './server.ts';

const probed = makeStateDirectory();
export const whyNoOci = await whyNotOci(ociOptions(probed));
removeFolders(probed);

/** How workers can run: the options that ask for it, why it cannot be had here, and where to look for what is left. */
export const WAYS = {
  docker: { args: DOCKER, missing: whyNoEngine(), engine: 'docker' },
  oci: { args: OCI, missing: whyNoOci, engine: 'none' },
  subprocess: { args: SUBPROCESS, missing: undefined, engine: 'none' },
} as const;
export type WayName = keyof typeof WAYS;

/** Only where it is meant: whoever needs no engine must not look for one. */
export function envOf(way: WayName): Record<string, string> {
  return way === 'docker' ? { DOCKER_HOST: engineHost() ?? '' } : {};
}

/** `kurukshetra` or `resume` with two workers, in one of the ways. */
export function startFleet(
  repository: FleetRepository,
  way: WayName,
  [command = '', ...args]: readonly string[],
  env: Readonly<Record<string, string>> = {},
): FleetCommand {
  return FleetCommand.start(repository, [command, ...WAYS[way].args, '--workers', '2', ...args], {
    env: { ...envOf(way), ...env },
  });
}
