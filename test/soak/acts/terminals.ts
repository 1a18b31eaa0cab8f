import assert from 'node:assert/strict';
import type { ExecsReply } from '../../../src/wire/session-exec.ts';
import type { Hand } from '../../support/session-door.ts';
import { openTerminal } from '../../support/session-terminal.ts';
import { toMarker } from '../markers.ts';
import type { World } from '../world.ts';
import { handOf, holdSession } from './held-session.ts';
import type { Perform } from './act.ts';
import type { SessionEntry } from '../ledger.ts';

const EXIT_CODE = 5;

/** Somebody works at a terminal, somebody else looks on. */
export const terminal: Perform = async (world, act) => {
  const { hand, entry } = await holdSession(world, act);
  const before = new Set((await terminalsOf(hand)).map(({ exec_id: id }) => id));
  const first = await openTerminal(world.server, hand.id);
  try {
    const marker = toMarker(act.number);
    first.type(`echo sum-${marker}-$((6 * 7))\n`);
    const shown = `sum-${marker}-42`;
    await first.shows(shown);
    const [made] = (await terminalsOf(hand)).filter(({ exec_id: id }) => !before.has(id));
    assert.ok(made !== undefined, 'the terminal is not among the commands');
    entry.terminals.set(made.exec_id, shown);
    world.ledger.noteAnswer();
    await leaveTerminal(world, entry, made.exec_id);
  } finally {
    first.close();
  }
};

/** Comes back to a terminal, which shows what it showed, and ends it. */
export async function leaveTerminal(world: World, entry: SessionEntry, id: string): Promise<void> {
  const hand = handOf(world, entry);
  const again = await openTerminal(world.server, entry.id, id);
  try {
    await again.shows(entry.terminals.get(id) ?? '');
    again.type(`exit ${EXIT_CODE}\n`);
    const { exit_code: exitCode } = await hand.result(id);
    assert.equal(exitCode, EXIT_CODE);
    entry.terminals.delete(id);
  } finally {
    again.close();
  }
}

async function terminalsOf(hand: Hand) {
  const { execs } = await hand.get<ExecsReply>('GET', '/execs');
  return execs.filter(({ terminal: isTerminal }) => isTerminal);
}
