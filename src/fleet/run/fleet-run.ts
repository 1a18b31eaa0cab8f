import type { HotcellError } from '../../core/errors.ts';
import type { CollectedCredentials } from '../environment/collect-credentials.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetSite } from '../fleet-site.ts';
import type { HostGit } from '../git/host-git.ts';
import type { FleetPaths } from '../names.ts';
import type { StateStore } from '../state/state-store.ts';
import type { TaskGraph } from '../task-graph.ts';
import type { AgentRun } from '../worker/agent-run.ts';

/** What an orchestrator needs. */
export interface FleetRun {
  readonly paths: FleetPaths;
  readonly graph: TaskGraph;
  readonly config: FleetConfig;
  readonly site: FleetSite;
  readonly git: HostGit;
  readonly store: StateStore;
  readonly agent: AgentRun;
  readonly credentials: CollectedCredentials;
  readonly workers: number;
  /** Variables that every program of a worker gets. */
  readonly variables: Readonly<Record<string, string>>;
  /** No level after this one. */
  readonly lastLevel: number | undefined;
  /** Somebody wants the fleet to stop. */
  readonly signal: AbortSignal;
  onEvent(event: string, data: Readonly<Record<string, unknown>>): void;
}

export type FleetOutcome =
  | { readonly kind: 'complete' }
  /** All levels that were asked for. */
  | { readonly kind: 'level-complete'; readonly level: number }
  | { readonly kind: 'stopped' }
  /** A person is needed; the state says it, too. */
  | { readonly kind: 'paused'; readonly error: HotcellError };
