import { expect, test } from 'vitest';
import type { Driver } from '../core/driver.ts';
import { HotcellError } from '../core/errors.ts';
import { SILENT_LOG } from '../core/log.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import { endLeftSessions, readLeft, type LeftEnds } from './left-sessions.ts';
import { SessionFixture, begin } from './session-fixture.double.ts';

const MINUTE = 60_000;

function endLeft(fixture: SessionFixture, drivers: readonly Driver[] = [fixture.driver]): Promise<LeftEnds> {
  return endLeftSessions({
    dir: fixture.folder,
    drivers,
    volumes: fixture.volumes,
    audit: { append: (entry) => fixture.audited.push(entry) },
    log: SILENT_LOG,
    now: () => fixture.clock.now(),
    onEnded: () => {},
  });
}

test('[RS-18, RS-22] who looks is told which sessions are left, in which cell, and until when', async () => {
  await using fixture = new SessionFixture();
  const sessions = await fixture.open();
  const idle = await fixture.create(sessions);
  const busy = await fixture.create(sessions);
  const paused = await fixture.create(sessions);
  await begin(busy, 'long', { timeoutMs: 60 * MINUTE });
  await paused.pause();
  const now = fixture.clock.now();
  await fixture.crash(sessions);
  const left = (session: string, cell: string, until: number | undefined) => ({
    session: toSessionMark(session),
    cell,
    driver: 'scripted',
    paused: until === undefined,
    until,
  });
  expect(readLeft(fixture.folder, 10 * MINUTE).sessions).toEqual([
    left(idle.id, '1', now + 40 * MINUTE),
    left(busy.id, '2', now + 100 * MINUTE),
    left(paused.id, '3', undefined),
  ]);
});

test('[RS-22, SC-02] of a server that was killed while it froze a cell nobody is told an end that the cell no longer keeps', async () => {
  await using fixture = new SessionFixture();
  const sessions = await fixture.open();
  const session = await fixture.create(sessions);
  const { freezer } = session.parts.cell;
  const begun = Promise.withResolvers<void>();
  if (freezer !== undefined)
    freezer.freeze = () => {
      begun.resolve();
      return new Promise(() => {});
    };
  void session.pause();
  await begun.promise;
  expect(fixture.host.cells[0]?.endsAfterMs).toBeUndefined();
  await fixture.crash(sessions);
  expect(readLeft(fixture.folder, 10 * MINUTE).sessions).toMatchObject([{ paused: true, until: undefined }]);
});

test('[RS-22] a cell that cannot be frozen has its end again', async () => {
  await using fixture = new SessionFixture();
  const sessions = await fixture.open();
  const session = await fixture.create(sessions);
  const { freezer } = session.parts.cell;
  if (freezer !== undefined) freezer.freeze = () => Promise.reject(new Error('no freezer'));
  await expect(session.pause()).rejects.toThrow('no freezer');
  expect(fixture.host.cells[0]?.endsAfterMs).toBe(40 * MINUTE);
  await fixture.crash(sessions);
  expect(readLeft(fixture.folder, 10 * MINUTE).sessions).toMatchObject([{ paused: false }]);
});

test('[RS-12, RS-22] all of them end, once, and everybody is told why', async () => {
  await using fixture = new SessionFixture();
  const before = await fixture.open();
  const [one, other] = [await fixture.create(before), await fixture.create(before, { project: 'other' })];
  await other.pause();
  await fixture.crash(before);
  fixture.audited.length = 0;
  const { ended, left, problems } = await endLeft(fixture);
  expect([ended.map(({ cell }) => cell), left, problems]).toEqual([['1', '2'], [], []]);
  expect(fixture.host.alive).toEqual([]);
  expect(fixture.volumes.held.size).toBe(0);
  expect(fixture.volumes.events.slice(-3)).toEqual([
    'release dependencies',
    'release dependencies',
    'reclaim all but 0',
  ]);
  expect(fixture.audited.map(({ action, session }) => [action, session])).toEqual([
    ['session.delete', one.id],
    ['session.delete', other.id],
  ]);
  expect(await endLeft(fixture)).toEqual({ ended: [], strays: [], left: [], problems: [] });
  const after = await fixture.open();
  expect(() => after.find(fixture.caller, one.id)).toThrow(/\(deleted\): hotcell down ended it/);
});

test('[RS-22, SC-02] what was being made and what was ending goes, too', async () => {
  await using fixture = new SessionFixture();
  const before = await fixture.open();
  const ending = await fixture.create(before);
  before.store.sessions.beginEnd(ending.id, { at: fixture.clock.now(), reason: 'expired', message: 'x' });
  const begun = Promise.withResolvers<void>();
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.driver.beforeCreate = () => {
    begun.resolve();
    return promise;
  };
  const making = fixture.create(before, { project: 'unborn' }).catch(() => {});
  await begun.promise;
  await fixture.crash(before);
  expect(await endLeft(fixture)).toMatchObject({ ended: [{ cell: '1' }], left: [] });
  expect(fixture.volumes.events).toContain('release nothing');
  resolve();
  await making;
  const after = await fixture.open();
  expect(() => after.find(fixture.caller, ending.id)).toThrow(/\(expired\)/);
});

test('[RS-22] a cell that its driver could not remove when its session ended is told, too', async () => {
  await using fixture = new SessionFixture();
  const before = await fixture.open();
  const [ended] = [await fixture.create(before), await fixture.create(before)];
  ended.parts.cell.dispose = () => Promise.resolve();
  await ended.destroy();
  await fixture.crash(before);
  const stray = { driver: 'scripted', cell: '1' };
  expect(await endLeft(fixture)).toMatchObject({ ended: [{ cell: '2' }], strays: [stray], left: [] });
});

test('[RS-22] sessions of a driver that cannot be asked are left as they are', async () => {
  await using fixture = new SessionFixture();
  const before = await fixture.open();
  const session = await fixture.create(before);
  await fixture.crash(before);
  expect(await endLeft(fixture, [])).toMatchObject({ ended: [], left: [{ cell: '1', driver: 'scripted' }] });
  expect(fixture.volumes.held.size).toBe(1);
  const after = await fixture.open();
  expect(after.find(fixture.caller, session.id).life.isOver).toBe(false);
  await fixture.crash(after);
  fixture.driver.lasting.reclaim = () => Promise.reject(new HotcellError('DRIVER_UNAVAILABLE', 'away'));
  const failed = await endLeft(fixture);
  expect(failed).toMatchObject({ ended: [], left: [{ cell: '1' }], problems: [{ message: 'away' }] });
});

test('[RS-22] a store that a server has is not touched', async () => {
  await using fixture = new SessionFixture();
  const session = await fixture.create(await fixture.open());
  expect(() => readLeft(fixture.folder, 0)).toThrow(/another server uses/);
  await expect(endLeft(fixture)).rejects.toMatchObject({ code: 'SESSIONS_UNAVAILABLE' });
  expect(session.life.isOver).toBe(false);
});
