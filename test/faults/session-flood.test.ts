import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { EventConnection, type ReceivedEvent } from '../../src/http/sessions/event-reader.double.ts';
import type { ExecReply } from '../../src/wire/session-exec.ts';
import { howOften } from '../support/endurance.ts';
import { readResidentBytes } from '../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import type { Hand } from '../support/session-door.ts';
import { ServedSessions } from '../support/session-site.ts';

const MiB = 1024 * 1024;
/** The whole of what is promised is 1024. */
const MEGABYTES = howOften(128, 1024);
const GROWTH = 64 * MiB;

const LINE = 'abcdefghijklmno\n';
/** So many bytes that every place in them tells what must stand there. */
const flood = (megabytes: number): string => `yes ${LINE.trim()} | head -c ${megabytes * MiB}`;

/** Follows a command, but takes only a bite now and then as long as it runs. Returns how much the server grew meanwhile. */
async function followSlowly(served: ServedSessions, hand: Hand, exec: string) {
  const { server } = served;
  const before = await readResidentBytes(server);
  let most = before;
  const connection = await EventConnection.open({
    port: Number(new URL(server.url).port),
    path: `/v1/sessions/${hand.id}/execs/${exec}/output`,
  });
  const { response } = connection;
  const pause = (): void => void response.pause();
  response.on('data', pause);
  for (;;) {
    const { state } = await hand.get<ExecReply>('GET', `/execs/${exec}`);
    most = Math.max(most, await readResidentBytes(server));
    if (state === 'ended') break;
    response.resume();
    await sleep(100);
  }
  response.off('data', pause);
  response.resume();
  await connection.ended;
  most = Math.max(most, await readResidentBytes(server));
  return { events: connection.events, growth: most - before };
}

/** Fails unless every byte is where it belongs, or is said to have been cut. */
function readAccount(events: readonly ReceivedEvent[]): { place: number; cut: number } {
  let place = 0;
  let cut = 0;
  for (const { type, data, lastEventId } of events) {
    if (type === 'stdout') {
      const from = place % LINE.length;
      const whole = LINE.repeat(Math.ceil(data.length / LINE.length) + 1);
      assert.ok(data === whole.slice(from, from + data.length), `wrong bytes at ${place}`);
      place += data.length;
    } else if (type === 'cut') {
      const { from, to } = JSON.parse(data) as { from: number; to: number };
      assert.equal(from, place);
      cut += to - from;
      place = to;
    }
    expect(Number(lastEventId)).toBe(place);
  }
  return { place, cut };
}

describeEach(FRESH_WAYS, (way) => {
  test(
    `[RS-05] ${MEGABYTES} MB of output to a slow reader: the server does not grow, and the account of the cut is exact`,
    { timeout: 120_000 + MEGABYTES * 300 },
    async () => {
      await using served = await ServedSessions.open({ way });
      const hand = await served.door().create();
      // Once before, because the first time compiles code and makes buffers that stay.
      await followSlowly(served, hand, await hand.begin(flood(16)));
      const exec = await hand.begin(flood(MEGABYTES));
      const { events, growth } = await followSlowly(served, hand, exec);
      const { place, cut } = readAccount(events);
      const { type = '', data = '' } = events.at(-1) ?? {};
      expect(type).toBe('exit');
      expect(JSON.parse(data)).toMatchObject({ ok: true, stdout_bytes: MEGABYTES * MiB });
      expect(place).toBe(MEGABYTES * MiB);
      // It was slow enough to miss something.
      expect(cut).toBeGreaterThan(0);
      expect(growth).toBeLessThan(GROWTH);
    },
  );
});
