import type { ServerContext } from '@modelcontextprotocol/server';
import { messageOf } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { CodeResult, CodeRun, RunProgress } from '../workbench/api.ts';

const PROGRESS_EVERY_MS = 250;
const ALIVE_EVERY_MS = 5000;
const MOST_CHARACTERS = 500;

interface AwaitOptions {
  readonly waitMs: number;
  readonly context: ServerContext;
  /** Whether the run ends when the client takes its call back. */
  readonly cancels: boolean;
  readonly log: Log;
}

/** The result, or undefined when it takes longer than the caller waits or the caller went away. */
export async function awaitRun(run: CodeRun, options: AwaitOptions): Promise<CodeResult | undefined> {
  const { waitMs, context, cancels, log } = options;
  const { signal } = context.mcpReq;
  const enough = Promise.withResolvers<undefined>();
  const onAbort = (): void => {
    if (cancels)
      run.cancel().catch((error: unknown) => log.warn({ error: messageOf(error) }, 'run cancel failed'));
    enough.resolve(undefined);
  };
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(() => enough.resolve(undefined), waitMs);
  const stopTelling = tellProgress(run, context, log);
  try {
    return await Promise.race([run.result, enough.promise]);
  } finally {
    stopTelling();
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

/** Phases, the newest output and signs of life, for clients that want to be told; each figure is larger than the last. */
function tellProgress(run: CodeRun, context: ServerContext, log: Log): () => void {
  const { _meta: meta } = context.mcpReq;
  const progressToken = meta?.progressToken;
  if (progressToken === undefined) return () => {};
  let progress = 0;
  let phase = run.phase;
  let newest: RunProgress | undefined = { phase, message: 'begun' };
  let timer: NodeJS.Timeout | undefined;
  const tell = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (newest === undefined) return;
    progress += 1;
    const message = `${newest.phase}: ${newest.message.slice(-MOST_CHARACTERS)}`;
    newest = undefined;
    context.mcpReq
      .notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
      .catch((error: unknown) => log.debug({ error: messageOf(error) }, 'progress not delivered'));
  };
  const stop = run.watch((next) => {
    const isNewPhase = next.phase !== phase;
    // Here, too, what a phase said last is told.
    if (isNewPhase) tell();
    phase = next.phase;
    newest = next;
    if (isNewPhase) tell();
    else timer ??= setTimeout(tell, PROGRESS_EVERY_MS);
  });
  const alive = setInterval(() => {
    const seconds = Math.round((Date.now() - run.startedAt) / 1000);
    newest ??= { phase, message: `for ${seconds} s` };
    tell();
  }, ALIVE_EVERY_MS);
  tell();
  return () => {
    stop();
    clearTimeout(timer);
    clearInterval(alive);
  };
}
