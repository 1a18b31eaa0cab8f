import { HotcellError, messageOf, toHotcellError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import type { OutputEvent, SessionExec } from '../../sessions/api.ts';
import { HEARTBEAT_FRAME, type EventFrames } from './event-frames.ts';
import { OutputPieces } from './output-pieces.ts';
import { toExecResult } from './render-exec.ts';
import { takingTurns } from './taking-turns.ts';

interface StreamOptions {
  readonly from: number;
  readonly frames: EventFrames;
  /** With an error of ours as reason the client is told so. */
  readonly signal: AbortSignal;
  readonly heartbeatMs: number;
  readonly log: Log;
}

/** The output of a command as server-sent events. Nothing is read ahead: the reader's pace is that of the output log. */
export async function* toEventStream(exec: SessionExec, options: StreamOptions): AsyncGenerator<string> {
  const { from, frames, signal, heartbeatMs } = options;
  const pieces = new OutputPieces();
  yield frames.start(exec.id, from);
  let isComplete = false;
  let failure = new HotcellError('SHUTTING_DOWN', 'the server has let go of this command');
  try {
    for await (const event of withHeartbeat(takingTurns(exec.follow(from, signal)), heartbeatMs)) {
      // Half a character may be all there is for a long time; then it is better than nothing.
      if (event === 'silence') yield* flushed(pieces, frames);
      yield* event === 'silence' ? [HEARTBEAT_FRAME] : framesOf(event, pieces, frames);
      isComplete = event !== 'silence' && event.type === 'exit';
    }
  } catch (error) {
    failure = toHotcellError(error);
    if (!signal.aborted)
      options.log.error({ exec: exec.id, error: messageOf(error) }, 'output stream failed');
  }
  if (isComplete) return;
  if (!signal.aborted) yield frames.interrupted(failure);
  else if (signal.reason instanceof HotcellError) yield frames.interrupted(signal.reason);
}

function* framesOf(event: OutputEvent, pieces: OutputPieces, frames: EventFrames): Generator<string> {
  switch (event.type) {
    case 'stdout':
    case 'stderr':
      for (const piece of pieces.add(event)) yield frames.piece(piece);
      return;
    case 'cut':
      yield* flushed(pieces, frames);
      yield frames.cut(event.from, event.to);
      return;
    case 'exit':
      yield* flushed(pieces, frames);
      yield frames.exit(toExecResult(event.result), event.from);
  }
}

function* flushed(pieces: OutputPieces, frames: EventFrames): Generator<string> {
  for (const piece of pieces.flush()) yield frames.piece(piece);
}

/** The items, and a word whenever none came for that long. */
async function* withHeartbeat<Item>(
  items: AsyncIterable<Item>,
  everyMs: number,
): AsyncGenerator<Item | 'silence'> {
  const iterator = items[Symbol.asyncIterator]();
  try {
    let next = iterator.next();
    for (;;) {
      const result = await withinMs(next, everyMs);
      if (result === 'silence') {
        yield 'silence';
        continue;
      }
      if (result.done === true) return;
      yield result.value;
      next = iterator.next();
    }
  } finally {
    await iterator.return?.();
  }
}

async function withinMs<Value>(promise: Promise<Value>, limitMs: number): Promise<Value | 'silence'> {
  const silence = Promise.withResolvers<'silence'>();
  const timer = setTimeout(() => silence.resolve('silence'), limitMs);
  try {
    return await Promise.race([promise, silence.promise]);
  } finally {
    clearTimeout(timer);
  }
}
