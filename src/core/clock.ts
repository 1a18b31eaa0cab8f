/** Time as a dependency, so that idle times can be tested without waiting for them. */
export interface Clock {
  now(): number;
  /** Calls `task` every `intervalMs`; the returned function ends it. */
  every(intervalMs: number, task: () => void): () => void;
}
