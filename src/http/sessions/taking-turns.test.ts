import { expect, test } from 'vitest';
import type { OutputEvent } from '../../sessions/api.ts';
import { takingTurns } from './taking-turns.ts';

const EVENT: OutputEvent = { type: 'stdout', from: 0, bytes: Buffer.alloc(64 * 1024) };

async function* withoutEnd(count: number): AsyncGenerator<OutputEvent> {
  for (let index = 0; index < count; index += 1) yield await Promise.resolve(EVENT);
}

test('[RS-06] output that is always there leaves the event loop to others', async () => {
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  });
  let seen = 0;
  for await (const event of takingTurns(withoutEnd(20_000))) if (event === EVENT) seen += 1;
  clearInterval(timer);
  expect(seen).toBe(20_000);
  expect(turns).toBeGreaterThan(2);
});
