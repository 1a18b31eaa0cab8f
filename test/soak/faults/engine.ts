import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultyEngine } from '../../support/faulty-engine.ts';
import { waitFor } from '../../support/leftovers.ts';
import { choose } from '../acts/act.ts';
import type { SessionEntry } from '../ledger.ts';
import type { World } from '../world.ts';
import type { Harm } from './fault.ts';

const RECOVERS_MS = 90_000;
const SHORTEST_FREEZE_MS = 500;
const MORE_FREEZE_MS = 4000;

function engineOf({ engine }: World): FaultyEngine {
  assert.ok(engine !== undefined, 'the soak has no engine of its own');
  return engine;
}

async function untilHealthy(world: World): Promise<void> {
  const server = await world.up();
  const isWell = async (): Promise<boolean> => {
    const { status, problem } = await server.health();
    return status === 'ok' && problem === null;
  };
  await waitFor('the server has its engine again', isWell, RECOVERS_MS);
  await Promise.all(
    world.ledger
      .entries()
      .map((entry) => waitFor('a session is over or goes on', () => isDecided(world, entry), RECOVERS_MS)),
  );
}

/** It takes a moment until the server knows which containers the engine has lost. */
async function isDecided(world: World, { id }: SessionEntry): Promise<boolean> {
  const { status } = await world.door.ask('GET', `/${id}`);
  if (status !== 200) return status === 410 || status === 404;
  const reply = await world.door.ask('POST', `/${id}/exec`, { command: 'true', timeout_s: 10 });
  // One that is paused says so.
  return [200, 409, 410].includes(reply.status) && reply.body['ok'] !== false;
}

/** It takes its containers with it: sessions are over, their files are not. */
export const killEngine: Harm = async (world) => {
  world.ledger.allowLosses(world.ledger.sessions.size);
  await engineOf(world).crash();
  await engineOf(world).startAgain();
  await untilHealthy(world);
};

export const freezeEngine: Harm = async (world, { dice }) => {
  engineOf(world).hang();
  try {
    // The length of the fault, not a wait for anything.
    await sleep(SHORTEST_FREEZE_MS + dice * MORE_FREEZE_MS);
  } finally {
    engineOf(world).goOn();
  }
  await untilHealthy(world);
};

/** One of the cells, whoever has it. */
export const killContainer: Harm = async (world, { dice }) => {
  await world.up();
  const { api } = engineOf(world);
  const containers = await api.call<{ Id: string; Labels: Record<string, string> }[]>(
    'GET',
    '/containers/json',
  );
  if (containers.length === 0) return;
  const { Id: id, Labels: labels } = choose(containers, dice);
  if (labels['hotcell.keeper'] !== undefined) world.ledger.allowLosses(1);
  // It may have ended by itself meanwhile.
  await api.call('POST', `/containers/${id}/kill`).catch(() => {});
  const isGone = async (): Promise<boolean> =>
    api.call('GET', `/containers/${id}/json`).then(
      () => false,
      () => true,
    );
  await waitFor('the server has noticed', isGone, RECOVERS_MS);
};
