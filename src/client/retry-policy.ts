export interface RetryPolicy {
  /** How often a request that is safe to repeat is sent again. */
  readonly requests: number;
  /** How often in a row, without a byte in between, a broken stream is opened again; enough for a restart of the server. */
  readonly reconnects: number;
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
  /** A stream without even a heartbeat for that long is dead, whatever the connection says. */
  readonly silenceMs: number;
}

export const USUAL_RETRIES: RetryPolicy = {
  requests: 4,
  reconnects: 14,
  firstDelayMs: 200,
  longestDelayMs: 5000,
  silenceMs: 60_000,
};

/** Longer each time, and never the same for two clients that lost the same server. */
export function delayBefore(attempt: number, policy: RetryPolicy): number {
  const full = Math.min(policy.longestDelayMs, policy.firstDelayMs * 2 ** attempt);
  return full * (0.5 + Math.random() / 2);
}

/** Resolves earlier when `signal` aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    if (signal.aborted) finish();
    else signal.addEventListener('abort', finish, { once: true });
  });
}
