import type { Log } from '../core/log.ts';
import type { FleetConfig } from './fleet-config.ts';
import type { FleetMode, FleetSite } from './fleet-site.ts';
import type { VolumeMaker } from './worktree-volumes.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface FleetWish {
  readonly mode: FleetMode | 'auto';
  /** One of `FleetSurroundings.drivers`. */
  readonly driver: string;
  /** Build the image of the workers if it is missing. */
  readonly autoBuild: boolean;
}

export interface SiteHooks {
  readonly log: Log;
  onProgress(text: string): void;
}

/** What the files of a fleet are read with. */
export interface FleetSurroundings {
  /** The caller's environment. */
  readonly env: Environment;
  /** What may be asked to make the cells of workers. */
  readonly drivers: readonly string[];
}

/** What is outside, put together by the app. */
export interface FleetMachine extends FleetSurroundings {
  /** The caller's home folder. */
  readonly home: string;
  readonly volumes: VolumeMaker;
  /** The driver and everything else that workers are made of. Says what it chose and why; makes nothing yet. */
  openSite(config: FleetConfig, wish: FleetWish, hooks: SiteHooks): Promise<FleetSite>;
  /** Removes what fleets left behind whose orchestrator is dead, whatever made their cells. Returns the ids of the cells. */
  reclaimCells(log: Log): Promise<string[]>;
}
