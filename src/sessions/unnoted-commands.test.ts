import { expect, test, vi } from 'vitest';
import { ExecRows } from './exec-rows.ts';
import { begin, made } from './session-fixture.double.ts';

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
