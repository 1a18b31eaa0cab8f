import { whyNoVolumes } from '../drivers/volumes/probe-volumes.ts';
import type { Config } from './config.ts';
import { dockerEndpoint } from './docker-endpoint.ts';

/** Why workspaces of sessions are in the memory of their cells; undefined where they are on disk. */
export function whyNotOnDisk(config: Config, driver: string): string | undefined {
  if (driver === 'docker' && !dockerEndpoint(config).local)
    return 'the engine is on another machine and does not see the folders of this one';
  return whyNoVolumes();
}
