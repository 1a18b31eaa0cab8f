import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Harm } from './fault.ts';

const SHORTEST_FREEZE_MS = 200;
const MORE_FREEZE_MS = 1500;

export const killServer: Harm = async (world) => {
  await world.end('SIGKILL');
  await world.start();
};

export const stopServer: Harm = async (world) => {
  const code = await world.end('SIGTERM');
  assert.equal(code, 0, `the server ended with ${code}: ${world.server.output.slice(-2000)}`);
  await world.start();
};

/** Nobody is answered for a while, and everybody afterwards. */
export const freezeServer: Harm = async ({ server }, { dice }) => {
  server.process.kill('SIGSTOP');
  try {
    // The length of the fault, not a wait for anything.
    await sleep(SHORTEST_FREEZE_MS + dice * MORE_FREEZE_MS);
  } finally {
    server.process.kill('SIGCONT');
  }
};
