import { setImmediate as nextTurn } from 'node:timers/promises';
import type { OutputEvent } from '../../sessions/api.ts';

const BYTES_PER_TURN = 512 * 1024;

/**
 * Output that is there already, and a reader as fast as we are, would never leave the event loop to anybody else;
 * so every now and then the others have their turn.
 */
export async function* takingTurns(events: AsyncIterable<OutputEvent>): AsyncGenerator<OutputEvent> {
  let bytes = 0;
  for await (const event of events) {
    yield event;
    if ('bytes' in event) bytes += event.bytes.length;
    if (bytes < BYTES_PER_TURN) continue;
    bytes = 0;
    await nextTurn();
  }
}
