export interface Backoff {
  readonly strategy: 'exponential' | 'linear' | 'fixed';
  readonly baseSeconds: number;
  readonly maxSeconds: number;
}

/** One part in ten more or less, so that workers that failed together do not come back together. */
const JITTER = 0.1;

/** Milliseconds to wait after this many failures in a row, the first one being 1. `random` is between 0 and 1. */
export function backoffMs(
  { strategy, baseSeconds, maxSeconds }: Backoff,
  failures: number,
  random: number,
): number {
  const grown = {
    exponential: baseSeconds * 2 ** (failures - 1),
    linear: baseSeconds * failures,
    fixed: baseSeconds,
  }[strategy];
  return Math.round(Math.min(maxSeconds, grown) * 1000 * (1 + JITTER * (2 * random - 1)));
}
