import { homedir } from 'node:os';
import { detachBelow } from '../../drivers/volumes/mounts.ts';
import { WorktreeVolumes } from '../../drivers/volumes/worktree-volumes.ts';
import type { FleetMachine } from '../../fleet/fleet-machine.ts';
import type { VolumeMaker } from '../../fleet/worktree-volumes.ts';
import type { Config } from '../config/config.ts';
import { WORKER_DRIVERS } from '../drivers/driver-choices.ts';
import { whyNotOnDisk } from '../workspaces.ts';
import { openFleetSite, reclaimFleetCells } from './open-fleet.ts';

export const WORKTREE_VOLUMES: VolumeMaker = {
  whyNone: whyNotOnDisk,
  areIn: (directory) => WorktreeVolumes.areIn(directory),
  prepare: (options) => WorktreeVolumes.prepare(options),
  detachBelow,
};

/** This machine, with the drivers that the settings have. */
export function fleetMachine(settings: Config): FleetMachine {
  return {
    env: process.env,
    drivers: WORKER_DRIVERS,
    home: homedir(),
    volumes: WORKTREE_VOLUMES,
    openSite: (config, wish, hooks) => openFleetSite(settings, config, wish, hooks),
    reclaimCells: (log) => reclaimFleetCells(settings, log),
  };
}
