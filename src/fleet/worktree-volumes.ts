import type { DriverTraits } from '../core/driver.ts';
import type { Log } from '../core/log.ts';

/** A bounded file system for what programs of one place write to. */
export interface Room {
  /** The worktree, as cells and our own renames find it. */
  readonly tree: string;
  /** For the git folder of the cell; not there at first. */
  readonly git: string;
  /** In the same file system, where no cell comes. */
  readonly beside: string;
  /** Made just now. */
  readonly fresh: boolean;
  isFull(): Promise<boolean>;
}

export interface WorktreeVolumes {
  /** Mounts the one of a place, and makes it if there is none. The worktree is seen at `worktree`, too. */
  open(key: string, bytes: number, worktree: string): Promise<Room>;
  /** With everything in it. */
  remove(key: string): Promise<void>;
  /** Leaves contents to the next orchestrator, and nothing mounted. */
  close(): Promise<void>;
}

export interface WorktreeVolumesOptions {
  readonly directory: string;
  readonly worktrees: string;
  readonly log: Log;
}

export interface VolumeMaker {
  /** Why this machine has none for cells of such a driver. */
  whyNone(traits: DriverTraits): string | undefined;
  /** Did a run before this one have any? */
  areIn(directory: string): Promise<boolean>;
  /** Also lets go of what a killed orchestrator has left mounted. Precondition: its cells are gone. */
  prepare(options: WorktreeVolumesOptions): Promise<WorktreeVolumes>;
  /** For folders that are about to go. */
  detachBelow(folders: readonly string[]): Promise<void>;
}
