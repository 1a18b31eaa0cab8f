import { expect, test, vi } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { ExecRows } from './exec-rows.ts';
import { SessionFixture, begin, made } from './session-fixture.double.ts';

test.each([true, false])(
  '[RS-22] a command that cannot be noted is refused and does not begin (background: %s)',
  async (background) => {
    const { fixture, session } = await made();
    await using _ = fixture;
    fixture.host.program = (command) => command.exit(0);
    vi.spyOn(ExecRows.prototype, 'add').mockImplementationOnce(() => {
      throw new Error('database or disk is full');
    });
    await expect(begin(session, 'true', { background })).rejects.toThrow('database or disk is full');
    expect(session.execs()).toEqual([]);
    expect((await (await begin(session, 'again', { background })).result).exitCode).toBe(0);
  },
);

test('[RS-13, SC-02] a session that cannot be made on a full disk leaves nothing behind but its row, and that only until there is room', async () => {
  await using fixture = new SessionFixture();
  const sessions = await fixture.open();
  fixture.driver.beforeCreate = () => Promise.reject(new HotcellError('CELL_START_FAILED', 'no room'));
  const rows = sessions.store.sessions;
  const remove = vi.spyOn(rows, 'remove').mockImplementation(() => {
    throw new Error('database or disk is full');
  });
  await expect(fixture.create(sessions)).rejects.toMatchObject({ code: 'CELL_START_FAILED' });
  expect(fixture.volumes.events.slice(-2)).toEqual(['make', 'release nothing']);
  await fixture.clock.advance(60_000);
  expect(rows.living()).toHaveLength(1);
  remove.mockRestore();
  await fixture.clock.advance(60_000);
  expect(rows.living()).toEqual([]);
});
