import type { CellFolder, CellImage, CellOwner } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import type { OpenNetwork } from '../egress/cell-network.ts';
import type { Refused } from '../egress/host-name.ts';
import type { Log } from '../core/log.ts';

/** Workers without walls. */
export const PLAIN_MODE = 'subprocess';
export const FLEET_MODES = ['container', PLAIN_MODE] as const;
export type FleetMode = (typeof FLEET_MODES)[number];

/** What workers are made of on this machine, put together by the app. */
export interface FleetSite {
  readonly mode: FleetMode;
  /** Why this mode, for people. */
  readonly reason: string;
  readonly driver: Driver;
  /** For people, such as `docker 20.10 with runc`. */
  readonly runtime: string;
  /** For drivers that use images. */
  readonly image: CellImage | undefined;
  /** Programs of the agent that a cell without images gets, read-only. */
  readonly agentFolders: readonly CellFolder[];
  /** The program behind the name of the agent's command, as the cell sees it. */
  toAgentProgram(command: string): string;
  /** Of Claude Code: what this release was tried with, and what cells have where that is known. */
  readonly agentVersions: { readonly tried: string; readonly inCells: string | undefined };
  /** Programs that come with us; plain processes have those of this machine first. */
  readonly tools: readonly string[];
  /** Who the next cell's programs are on the host; undefined where they are whoever we are. */
  nextOwner(): CellOwner | undefined;
  /** Undefined where cells have the network of the host. */
  readonly openNetwork: OpenNetwork | undefined;
  /** Why cells that may reach these hosts do not get to a URL; undefined where they have the network of the host. */
  readonly whyNotReached: ((allow: readonly string[], url: URL) => Promise<Refused | undefined>) | undefined;
  /** Whom programs of the cell may trust, where this machine has authorities of its own. */
  readonly caBundle: Uint8Array | undefined;
  readonly log: Log;
  /** Removes what is left of fleets whose orchestrator is dead. */
  reclaim(): Promise<string[]>;
  close(): Promise<void>;
}
