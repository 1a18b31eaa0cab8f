/** What is left of a volume when its session is over. */
export type VolumeKeep = 'dependencies' | 'all' | 'nothing';

export interface Volume {
  /** Undefined: this host has no bounded file systems; the workspace is in memory and goes with the cell. */
  readonly folder: string | undefined;
  /** The host id that everything in the folder belongs to. */
  readonly owner: number;
  /** Made just now: nothing of an earlier session is in it. */
  readonly fresh: boolean;
}

/** Bounded file systems, one per project of a user of a tenant. */
export interface Volumes {
  /** Before the driver does anything with cells of an earlier server; the first `open` does it otherwise. */
  prepare(): Promise<void>;
  /** Makes or mounts the volume of a project; the same one again for the same key. */
  open(key: string, diskBytes: number): Promise<Volume>;
  /**
   * The session is over. Keeps dependency folders (node_modules, .venv, caches), everything, or nothing, and removes the
   * volume when nothing is left.
   */
  release(key: string, keep: VolumeKeep): Promise<void>;
  usedBytes(key: string): Promise<number | undefined>;
  /** After a restart: lets go of every volume but those with these keys, as if their sessions had expired. */
  reclaim(keepKeys: ReadonlySet<string>): Promise<void>;
  /** Leaves the volumes to those who use them, and to the next server. */
  close(): Promise<void>;
}
