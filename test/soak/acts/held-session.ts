import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { SessionExecReply } from '../../../src/wire/session-exec.ts';
import type { SessionReply } from '../../../src/wire/sessions.ts';
import type { Hand } from '../../support/session-door.ts';
import type { SessionEntry } from '../ledger.ts';
import type { Act } from '../plan.ts';
import { Refusal } from '../troubles.ts';
import type { World } from '../world.ts';

/** Small, so that a program can fill it in a moment. */
const DISK_MB = 16;

export interface Held {
  readonly hand: Hand;
  readonly entry: SessionEntry;
}

/** The session of a lane, or a new one. */
export async function holdSession(world: World, { lane, number }: Act): Promise<Held> {
  await world.up();
  const entry = world.ledger.sessionOf(lane);
  if (entry !== undefined) {
    const hand = handOf(world, entry);
    // An act before this one may have been refused to wake it.
    if (entry.paused === 'perhaps') await hand.get('POST', '/resume');
    entry.paused = 'no';
    if (entry.isBeset) await endHostile({ entry, hand });
    return { entry, hand };
  }
  return openSession(world, `soak-${lane}-${number}`, lane);
}

export async function openSession(world: World, project: string, lane: number): Promise<Held> {
  world.ledger.askForSession(project, lane);
  const hand = await world.door.create({ project_id: project, limits: { disk_mb: DISK_MB } });
  return { hand, entry: world.ledger.addSession(hand.id, project, lane) };
}

/** By its id alone: what the server said of it at its making may have been said to nobody. */
export function handOf(world: World, { id, project }: SessionEntry): Hand {
  return world.door.hold({ session_id: id, project_id: project } as SessionReply);
}

/** A command to its end; fails unless it ended by itself or at its time. */
export async function execute({ hand }: Held, command: string, more: object = {}): Promise<SessionExecReply> {
  const reply = await hand.exec(command, { reset_cwd: true, ...more });
  requireOwnEnd(command, reply.end);
  return reply;
}

/** That its cell did not start or was lost, or that its output found no room, is the command's end, but not its own. */
export function requireOwnEnd(what: string, end: SessionExecReply['end']): void {
  const { reason, message, killed_by: killedBy } = end;
  if (reason === 'cell_lost' || reason === 'start_failed' || killedBy === 'output_log')
    throw new Refusal(what, 200, reason, message);
}

export async function print(held: Held, command: string): Promise<string> {
  const reply = await execute(held, command);
  assert.equal(reply.exit_code, 0, `${command}: ${JSON.stringify(reply)}`);
  return reply.stdout;
}

/** However the act ended that has started it: hostile programs go on when the server is killed. */
export async function endHostile(held: Held): Promise<void> {
  await held.hand.get('POST', '/kill');
  // This waits for its turn, which comes when nothing is left of the other one.
  assert.equal(await print(held, 'echo still here'), 'still here\n');
  held.entry.isBeset = false;
}

export function digestOf(output: string): string {
  return createHash('sha256').update(output).digest('hex').slice(0, 12);
}
