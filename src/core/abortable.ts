import { toCancelError } from './errors.ts';

/** What comes of `work`, unless `signal` is faster; the work itself goes on, for others or for later. */
export async function abortable<T>(
  work: Promise<T>,
  signal: AbortSignal,
  toError = toCancelError,
): Promise<T> {
  if (signal.aborted) {
    work.catch(() => {});
    throw toError(signal);
  }
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(toError(signal));
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
