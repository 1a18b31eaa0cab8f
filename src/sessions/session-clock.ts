/** Time as a dependency. Its times mean the same in the next life of the server. */
export interface SessionClock {
  /** Milliseconds since 1970, with fractions, never going back while the server runs. */
  now(): number;
  /** Calls `task` once; the returned function takes it back. */
  after(delayMs: number, task: () => void): () => void;
  /** Calls `task` every `intervalMs`; the returned function ends it. */
  every(intervalMs: number, task: () => void): () => void;
}

export const SYSTEM_SESSION_CLOCK: SessionClock = {
  now: () => performance.timeOrigin + performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  every(intervalMs, task) {
    const timer = setInterval(task, intervalMs);
    timer.unref();
    return () => clearInterval(timer);
  },
};

export function toIsoTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
