import { homedir } from 'node:os';
import type { FleetMachine } from '../../fleet/fleet-machine.ts';
import type { Config } from '../config/config.ts';
import { WORKER_DRIVERS } from '../drivers/driver-choices.ts';
import { openFleetSite, reclaimFleetCells } from './open-fleet.ts';

/** This machine, with the drivers that the settings have. */
export function fleetMachine(settings: Config): FleetMachine {
  return {
    env: process.env,
    drivers: WORKER_DRIVERS,
    home: homedir(),
    openSite: (config, wish, hooks) => openFleetSite(settings, config, wish, hooks),
    reclaimCells: (log) => reclaimFleetCells(settings, log),
  };
}
