import { expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import type { LiveSession } from './session.ts';
import { SessionFixture, begin } from './session-fixture.double.ts';

const MINUTE = 60_000;

/** Every line of the log, as its text and its fields. */
function listen(): { told: (readonly [string, object])[]; log: Log } {
  const told: (readonly [string, object])[] = [];
  const hear = (fields: object, text: string): void => void told.push([text, fields]);
  return { told, log: { debug: hear, info: hear, warn: hear, error: hear } };
}

test.each(['keep', 'end'] as const)(
  '[RS-22] a server that stops can %s its sessions, and says so',
  async (onStop) => {
    await using fixture = new SessionFixture();
    const { told, log } = listen();
    const sessions = await fixture.open({ settings: { onStop }, log });
    const session = await fixture.create(sessions);
    await begin(session, 'long', { background: true });
    await fixture.stop(sessions);
    const isKept = onStop === 'keep';
    expect(fixture.host.alive).toHaveLength(isKept ? 1 : 0);
    const until = expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as unknown;
    const text = isKept ? 'sessions kept' : 'sessions ended';
    expect(told).toContainEqual([text, { sessions: 1, ...(isKept ? { until } : {}) }]);
  },
);

test('[RS-22] a server that stops names no end for sessions that are paused: they cannot keep it', async () => {
  await using fixture = new SessionFixture();
  const { told, log } = listen();
  const sessions = await fixture.open({ log });
  const [awake, paused] = [await fixture.create(sessions), await fixture.create(sessions)];
  await fixture.clock.advance(5 * MINUTE);
  await begin(paused, 'long', { timeoutMs: 60 * MINUTE });
  await paused.pause();
  const until = new Date(awake.expiresAt + 10 * MINUTE).toISOString();
  await fixture.stop(sessions);
  expect(told).toContainEqual(['sessions kept', { sessions: 1, until }]);
  const hint = expect.stringContaining('hotcell down') as unknown;
  expect(told).toContainEqual(['paused sessions kept', { sessions: 1, hint }]);
  expect(fixture.host.cells.map(({ endsAfterMs }) => endsAfterMs)).toEqual([35 * MINUTE, undefined]);
});

test('[RS-22] a server that was to end its sessions counts those that ended, and names the others', async () => {
  await using fixture = new SessionFixture();
  const { told, log } = listen();
  const before = await fixture.open();
  const unreadable = await fixture.create(before);
  before.store.sessions.setFacts(unreadable.id, {} as never);
  await fixture.crash(before);
  const sessions = await fixture.open({ settings: { onStop: 'end' }, log });
  const [, refusing, silent] = [
    await fixture.create(sessions),
    await fixture.create(sessions),
    await fixture.create(sessions),
  ];
  const [, refusingCell, silentCell] = fixture.driver.cells;
  if (refusingCell !== undefined) refusingCell.dispose = () => Promise.reject(new Error('no such luck'));
  if (silentCell !== undefined) silentCell.dispose = () => Promise.resolve();
  await fixture.stop(sessions);
  expect(told).toContainEqual(['sessions ended', { sessions: 1 }]);
  const hint = expect.stringContaining('hotcell down') as unknown;
  const failed = (session: LiveSession | undefined, error: string): unknown => [
    'session end failed',
    { session: toSessionMark(session?.id ?? ''), cell: session?.parts.cell.id, error, hint },
  ];
  expect(told).toContainEqual(failed(refusing, 'no such luck'));
  expect(told).toContainEqual(failed(silent, 'its cell could not be removed'));
  expect(told).toContainEqual(['other cells left', { cells: ['1'], hint }]);
});

test('[RS-22] a driver that cannot say what is left is not taken for one that has nothing', async () => {
  await using fixture = new SessionFixture();
  const { told, log } = listen();
  const sessions = await fixture.open({ settings: { onStop: 'end' }, log });
  await fixture.create(sessions);
  fixture.driver.lasting.list = () => Promise.reject(new HotcellError('DRIVER_UNAVAILABLE', 'away'));
  await fixture.stop(sessions);
  expect(told).toContainEqual(['sessions ended', { sessions: 0 }]);
  expect(told.map(([text]) => text)).toEqual(
    expect.arrayContaining(['cells not listed', 'session end failed']),
  );
});

test('[RS-22] a start that fails ends nothing, whatever a stop would do', async () => {
  await using fixture = new SessionFixture();
  const before = await fixture.open();
  await fixture.create(before);
  await fixture.crash(before);
  fixture.volumes.reclaim = () => Promise.reject(new Error('away'));
  await expect(fixture.open({ settings: { onStop: 'end' } })).rejects.toThrow('away');
  expect(fixture.host.alive).toHaveLength(1);
});
