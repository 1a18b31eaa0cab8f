import assert from 'node:assert/strict';
import { EventConnection, type ReceivedEvent } from '../../../src/http/sessions/event-reader.double.ts';
import type { ExecResult } from '../../../src/wire/session-exec.ts';
import { countTo, expectCounted } from '../counting.ts';
import { toMarker } from '../markers.ts';
import { Refusal } from '../troubles.ts';
import type { World } from '../world.ts';
import { digestOf, holdSession, requireOwnEnd } from './held-session.ts';
import type { Perform } from './act.ts';

const FEWEST_LINES = 20;
const MORE_LINES = 60;
const MOST_CONNECTIONS = 50;

/** Follows a command by events, and comes back as often as it is cut off: not a line is missing, and none comes twice. */
export const stream: Perform = async (world, act) => {
  const { hand, entry } = await holdSession(world, act);
  const lines = FEWEST_LINES + Math.floor(act.dice * MORE_LINES);
  const id = await hand.begin(countTo(lines, toMarker(act.number)));
  world.ledger.noteAnswer();
  const events: ReceivedEvent[] = [];
  for (let tries = 0; events.at(-1)?.type !== 'exit'; tries++) {
    assert.ok(tries < MOST_CONNECTIONS, 'the stream has no end');
    events.push(...(await follow(world, `/v1/sessions/${hand.id}/execs/${id}/output`, events.at(-1))));
  }
  const { exit_code: exitCode, end } = JSON.parse(events.at(-1)?.data ?? '') as ExecResult;
  requireOwnEnd('stream', end);
  const said = (where: string): string =>
    events
      .filter(({ type }) => type === where)
      .map(({ data }) => data)
      .join('');
  assert.equal(exitCode, 0, `${JSON.stringify(end)} ${said('stderr')}`);
  const output = said('stdout');
  expectCounted(output);
  world.noteEnded(entry, id, { exitCode, output: digestOf(output) });
};

/** The events of one connection, from behind the last one. */
async function follow(
  world: World,
  path: string,
  last: ReceivedEvent | undefined,
): Promise<readonly ReceivedEvent[]> {
  const { url } = await world.up();
  const headers = last === undefined ? {} : { 'last-event-id': last.lastEventId };
  const opening = { port: Number(new URL(url).port), path, headers };
  const connection = await EventConnection.open(opening).catch((error: unknown) => {
    // The server has ended since it was said to be there.
    if (world.isUp) throw error;
    return undefined;
  });
  if (connection === undefined) return world.untilDown().then(() => []);
  if (connection.status !== 200) {
    await connection.ended;
    const { code, detail } = JSON.parse(connection.text) as { code: string; detail: string };
    throw new Refusal(`GET ${path}`, connection.status, code, detail);
  }
  const wire = { cut: () => void connection.response.destroy(new Error('cut off')) };
  world.wires.add(wire);
  // Cut off by whatever it was: the next one goes on from there.
  await connection.ended.catch(() => {});
  world.wires.delete(wire);
  return connection.events;
}
