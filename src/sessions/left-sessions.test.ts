import { expect, test } from 'vitest';
import type { Driver } from '../core/driver.ts';
import { HotcellError } from '../core/errors.ts';
import { SILENT_LOG } from '../core/log.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import { endLeftSessions, readLeft, type LeftEnds } from './left-sessions.ts';
import { SessionDesk, begin } from './session-desk.double.ts';

const MINUTE = 60_000;

function endLeft(desk: SessionDesk, drivers: readonly Driver[] = [desk.driver]): Promise<LeftEnds> {
  return endLeftSessions({
    dir: desk.folder,
    drivers,
    volumes: desk.volumes,
    audit: { append: (entry) => desk.audited.push(entry) },
    log: SILENT_LOG,
    now: () => desk.clock.now(),
    onEnded: () => {},
  });
}

test('[RS-18, RS-22] who looks is told which sessions are left, in which cell, and until when', async () => {
  await using desk = new SessionDesk();
  const sessions = await desk.open();
  const idle = await desk.create(sessions);
  const busy = await desk.create(sessions);
  const paused = await desk.create(sessions);
  await begin(busy, 'long', { timeoutMs: 60 * MINUTE });
  await paused.pause();
  const now = desk.clock.now();
  await desk.crash(sessions);
  const left = (session: string, cell: string, until: number | undefined) => ({
    session: toSessionMark(session),
    cell,
    driver: 'scripted',
    until,
  });
  expect(readLeft(desk.folder, 10 * MINUTE).sessions).toEqual([
    left(idle.id, '1', now + 40 * MINUTE),
    left(busy.id, '2', now + 100 * MINUTE),
    left(paused.id, '3', undefined),
  ]);
});

test('[RS-12, RS-22] all of them end, once, and everybody is told why', async () => {
  await using desk = new SessionDesk();
  const before = await desk.open();
  const [one, other] = [await desk.create(before), await desk.create(before, { project: 'other' })];
  await other.pause();
  await desk.crash(before);
  desk.audited.length = 0;
  const { ended, left, problems } = await endLeft(desk);
  expect([ended.map(({ cell }) => cell), left, problems]).toEqual([['1', '2'], [], []]);
  expect(desk.host.alive).toEqual([]);
  expect(desk.volumes.held.size).toBe(0);
  expect(desk.volumes.events.slice(-3)).toEqual([
    'release dependencies',
    'release dependencies',
    'reclaim all but 0',
  ]);
  expect(desk.audited.map(({ action, session }) => [action, session])).toEqual([
    ['session.delete', one.id],
    ['session.delete', other.id],
  ]);
  expect(await endLeft(desk)).toEqual({ ended: [], left: [], problems: [] });
  const after = await desk.open();
  expect(() => after.find(desk.caller, one.id)).toThrow(/\(deleted\): hotcell down ended it/);
});

test('[RS-22, SC-02] what was being made and what was ending goes, too', async () => {
  await using desk = new SessionDesk();
  const before = await desk.open();
  const ending = await desk.create(before);
  before.store.sessions.beginEnd(ending.id, { at: desk.clock.now(), reason: 'expired', message: 'x' });
  const begun = Promise.withResolvers<void>();
  const { promise, resolve } = Promise.withResolvers<void>();
  desk.driver.beforeCreate = () => {
    begun.resolve();
    return promise;
  };
  const making = desk.create(before, { project: 'unborn' }).catch(() => {});
  await begun.promise;
  await desk.crash(before);
  expect(await endLeft(desk)).toMatchObject({ ended: [{ cell: '1' }], left: [] });
  expect(desk.volumes.events).toContain('release nothing');
  resolve();
  await making;
  const after = await desk.open();
  expect(() => after.find(desk.caller, ending.id)).toThrow(/\(expired\)/);
});

test('[RS-22] sessions of a driver that cannot be asked are left as they are', async () => {
  await using desk = new SessionDesk();
  const before = await desk.open();
  const session = await desk.create(before);
  await desk.crash(before);
  expect(await endLeft(desk, [])).toMatchObject({ ended: [], left: [{ cell: '1', driver: 'scripted' }] });
  expect(desk.volumes.held.size).toBe(1);
  const after = await desk.open();
  expect(after.find(desk.caller, session.id).life.isOver).toBe(false);
  await desk.crash(after);
  desk.driver.lasting.reclaim = () => Promise.reject(new HotcellError('DRIVER_UNAVAILABLE', 'away'));
  const failed = await endLeft(desk);
  expect(failed).toMatchObject({ ended: [], left: [{ cell: '1' }], problems: [{ message: 'away' }] });
});

test('[RS-22] a store that a server has is not touched', async () => {
  await using desk = new SessionDesk();
  const session = await desk.create(await desk.open());
  expect(() => readLeft(desk.folder, 0)).toThrow(/another server uses/);
  await expect(endLeft(desk)).rejects.toMatchObject({ code: 'SESSIONS_UNAVAILABLE' });
  expect(session.life.isOver).toBe(false);
});
