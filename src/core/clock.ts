/** Time as a dependency, so that it can be tested without waiting for it. */
export interface Clock {
  /**
   * Milliseconds since 1970, with fractions, never going back while the server runs. They mean the same in the next life
   * of the server.
   */
  now(): number;
  /** Calls `task` once; the returned function takes it back. */
  after(delayMs: number, task: () => void): () => void;
  /** Calls `task` every `intervalMs`; the returned function ends it. */
  every(intervalMs: number, task: () => void): () => void;
}
