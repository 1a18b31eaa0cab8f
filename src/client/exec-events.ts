import type { ClientEvent } from './client-event.ts';
import { ExecFollower, type Following } from './exec-follower.ts';
import { RunnerError } from './runner-error.ts';

export interface FollowOptions {
  /** Ends the following; the iterator then throws a RunnerError with the code CANCELLED. */
  readonly signal?: AbortSignal | undefined;
  /** End the command too when the caller goes away before its end. Otherwise it goes on, and can be followed again. */
  readonly killOnAbort?: boolean | undefined;
}

interface ExecEventsParts extends FollowOptions {
  readonly following: Omit<Following, 'signal'>;
  readonly kill: (execId: string) => Promise<unknown>;
}

/** An iterator whose `return` takes effect at once, also while an event is waited for. */
export function toExecEvents(parts: ExecEventsParts): AsyncIterableIterator<ClientEvent> {
  const leaving = new AbortController();
  const generator = follow(parts, leaving.signal);
  return {
    next: () => generator.next(),
    return: () => {
      leaving.abort();
      return generator.return(undefined);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

async function* follow(
  { following, kill, signal, killOnAbort = false }: ExecEventsParts,
  leaving: AbortSignal,
): AsyncGenerator<ClientEvent> {
  const follower = new ExecFollower({
    ...following,
    signal: signal === undefined ? leaving : AbortSignal.any([leaving, signal]),
  });
  let isLeft = true;
  try {
    yield* follower.events();
    isLeft = false;
  } catch (error) {
    isLeft = error instanceof RunnerError && error.code === 'CANCELLED';
    throw error;
  } finally {
    const { execId, hasEnded } = follower;
    if (isLeft && killOnAbort && execId !== undefined && !hasEnded) await kill(execId);
  }
}
