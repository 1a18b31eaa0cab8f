import type { HotcellError } from '../../core/errors.ts';
import type { CollectedCredentials } from '../environment/collect-credentials.ts';
import type { KnownSecrets } from '../environment/known-secrets.ts';
import type { FoundFleet } from '../find-fleet.ts';
import type { FleetSite } from '../fleet-site.ts';
import type { StateStore } from '../state/state-store.ts';
import type { TaskGraph } from '../task-graph.ts';
import type { AgentRun } from '../worker/agent-run.ts';
import type { WorktreeVolumes } from '../worktree-volumes.ts';

/** A feature with its tasks, before anything is touched. */
export interface PreparedFleet extends FoundFleet {
  readonly graph: TaskGraph;
  readonly graphPath: string;
  readonly warnings: readonly string[];
  readonly workers: number;
  /** What somebody has said of their number, now or when it was begun; otherwise it is up to the configuration. */
  readonly askedWorkers: number | undefined;
}

/** What an orchestrator needs. */
export interface FleetRun extends PreparedFleet {
  readonly site: FleetSite;
  readonly store: StateStore;
  readonly agent: AgentRun;
  readonly credentials: CollectedCredentials;
  readonly secrets: KnownSecrets;
  /** Undefined: worktrees are plain folders, and watched. */
  readonly volumes: WorktreeVolumes | undefined;
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
