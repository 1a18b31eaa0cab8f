import assert from 'node:assert/strict';
import type { ExecReply, ExecsReply } from '../../../src/wire/session-exec.ts';
import { BreakingProxy } from '../../support/breaking-proxy.ts';
import type { Hand } from '../../support/session-door.ts';
import { openTerminal, type Terminal } from '../../support/session-terminal.ts';
import { toMarker } from '../markers.ts';
import type { World } from '../world.ts';
import { handOf, holdSession, requireOwnEnd } from './held-session.ts';
import type { Perform } from './act.ts';
import type { SessionEntry } from '../ledger.ts';

const EXIT_CODE = 5;

/** Somebody works at a terminal, somebody else comes to it and goes on. */
export const terminal: Perform = async (world, act) => {
  const { hand, entry } = await holdSession(world, act);
  const before = new Set((await terminalsOf(hand)).map(({ exec_id: id }) => id));
  await sitAt(world, entry, undefined, async (first) => {
    const marker = toMarker(act.number);
    first.type(`echo sum-${marker}-$((6 * 7))\n`);
    const shown = `sum-${marker}-42`;
    await first.shows(shown);
    const [made] = (await terminalsOf(hand)).filter(({ exec_id: id }) => !before.has(id));
    assert.ok(made !== undefined, 'the terminal is not among the commands');
    entry.terminals.set(made.exec_id, shown);
    world.ledger.noteAnswer();
    await leaveTerminal(world, entry, made.exec_id);
  });
};

/** Comes back to a terminal, which shows what it showed, and ends it. */
export async function leaveTerminal(world: World, entry: SessionEntry, id: string): Promise<void> {
  await sitAt(world, entry, id, async (again) => {
    await again.shows(entry.terminals.get(id) ?? '');
    again.type(`exit ${EXIT_CODE}\n`);
    await again.closed;
    const { result } = await handOf(world, entry).get<ExecReply>('GET', `/execs/${id}?wait_s=1`);
    // What was typed is lost with the connection; whoever comes back types it again.
    if (result === null) throw new Error('the terminal was closed before what was typed had come there');
    const { exit_code: exitCode, end } = result;
    requireOwnEnd('terminal', end);
    assert.equal(exitCode, EXIT_CODE);
    entry.terminals.delete(id);
  });
}

/** At a new terminal or at the one with this id, over a wire that can be cut. */
async function sitAt(
  world: World,
  entry: SessionEntry,
  id: string | undefined,
  work: (seat: Terminal) => Promise<void>,
): Promise<void> {
  await using proxy = await BreakingProxy.start(Number(new URL(world.server.url).port));
  const wire = { cut: () => proxy.breakAll() };
  world.wires.add(wire);
  try {
    const seat = await openTerminal(proxy, entry.id, id);
    await work(seat);
    seat.close();
  } finally {
    world.wires.delete(wire);
  }
}

async function terminalsOf(hand: Hand) {
  const { execs } = await hand.get<ExecsReply>('GET', '/execs');
  return execs.filter(({ terminal: isTerminal }) => isTerminal);
}
