import { appendFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import type { ScriptedCommand } from './scripted-command.double.ts';
import { SessionFixture, begin } from './session-fixture.double.ts';
import type { KeptSessions } from './sessions.ts';

const SECOND = 1000;
const NEVER = new AbortController().signal;

const commandOf = (fixture: SessionFixture, index: number): ScriptedCommand => {
  const command = fixture.host.cells[0]?.users[index];
  if (command === undefined) throw new Error('no such command');
  return command;
};

describe.each([
  ['an orderly stop', (fixture: SessionFixture, sessions: KeptSessions) => fixture.stop(sessions)],
  ['a crash', (fixture: SessionFixture, sessions: KeptSessions) => fixture.crash(sessions)],
])('after %s', (_name, end) => {
  test('[RS-22] sessions are there, commands go on, their output is whole, and waits for nobody', async () => {
    await using fixture = new SessionFixture();
    const before = await fixture.open();
    const session = await fixture.create(before, { user: 'ann' });
    fixture.host.program = (command) => {
      if (command.text === 'cd sub') command.exit(0, { cwd: '/workspace/shop/sub' });
    };
    const moved = await (await begin(session, 'cd sub')).result;
    const running = await begin(session, 'long', { timeoutMs: 100_000 });
    const server = await begin(session, 'server', { background: true });
    commandOf(fixture, 1).say('before ');
    await vi.waitFor(() => expect(running.outputBytes).toBe(7));
    await end(fixture, before);
    expect(fixture.host.alive).toHaveLength(1);
    commandOf(fixture, 1).say('between ', 'stderr');
    await fixture.clock.advance(10 * SECOND);

    const after = await fixture.open();
    expect(after.stats()).toMatchObject({ open: 1, adopted: 1 });
    const found = after.find(fixture.caller, session.id);
    expect(found.describe()).toMatchObject({ user: 'ann', cwd: '/workspace/shop/sub', state: 'running' });
    expect(found.execs().map(({ state }) => state)).toEqual(['ended', 'running', 'running']);
    expect((await found.findExec(moved.execId).report()).end.reason).toBe('exit');
    await expect(begin(found, 'next', { onBusy: 'reject' })).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    found.findExec(server.id).write(Buffer.from('still open'));
    expect(commandOf(fixture, 2).stdin).toBe('still open');
    commandOf(fixture, 1).say('after');
    commandOf(fixture, 1).exit(7);
    expect(await found.findExec(running.id).report()).toMatchObject({
      exitCode: 7,
      stdout: 'before after',
      stderr: 'between ',
      durationMs: 10_000,
    });
    await begin(found, 'next', { onBusy: 'reject' });
    expect(commandOf(fixture, 3).request.cwd).toBe('/workspace/shop/sub');
  });

  test('[RS-22] a command that ended meanwhile is told with all it said', async () => {
    await using fixture = new SessionFixture();
    const before = await fixture.open();
    const session = await fixture.create(before);
    const exec = await begin(session, 'long');
    await end(fixture, before);
    commandOf(fixture, 0).say('x'.repeat(100_000));
    commandOf(fixture, 0).exit(5, { cwd: '/tmp' });
    const after = await fixture.open();
    const found = after.find(fixture.caller, session.id);
    const reply = await found.findExec(exec.id).report();
    expect(reply).toMatchObject({
      exitCode: 5,
      stdoutBytes: 100_000,
      cwd: '/tmp',
      end: { reason: 'exit' },
    });
    expect(reply.stdout).toBe('x'.repeat(100_000));
    await vi.waitFor(() => expect(commandOf(fixture, 0).heard).toContain('forget'));
  });

  test('[RS-22] [RS-07] the time of a command counts from its start', async () => {
    await using fixture = new SessionFixture();
    const before = await fixture.open();
    const session = await fixture.create(before);
    await begin(session, 'in time', { timeoutMs: 60_000, background: true });
    await begin(session, 'late', { timeoutMs: 60_000, background: true });
    const stubborn = await begin(session, 'stubborn', { timeoutMs: 90_000, background: true });
    commandOf(fixture, 2).onTerminate = () => {};
    await fixture.clock.advance(50 * SECOND);
    await end(fixture, before);
    commandOf(fixture, 0).exit(0);
    await fixture.clock.advance(30 * SECOND);
    const after = await fixture.open();
    const found = after.find(fixture.caller, session.id);
    // The cell gets a moment to say that a command ended by itself.
    await fixture.clock.advance(0.9 * SECOND);
    expect(commandOf(fixture, 1).heard).toEqual([]);
    await fixture.clock.advance(8.1 * SECOND);
    expect(found.execs().map(({ result }) => result?.end.reason)).toEqual(['exit', 'timeout', undefined]);
    await fixture.clock.advance(2 * SECOND);
    expect(commandOf(fixture, 2).heard.at(-1)).toBe('terminate');
    await fixture.clock.advance(5 * SECOND);
    expect((await found.findExec(stubborn.id).result).end).toMatchObject({
      reason: 'timeout',
      signal: 'SIGKILL',
    });
  });

  test('[RS-22] a paused session is paused, and its commands have the time they had', async () => {
    await using fixture = new SessionFixture();
    const before = await fixture.open();
    const session = await fixture.create(before);
    await begin(session, 'long', { timeoutMs: 60_000 });
    await fixture.clock.advance(50 * SECOND);
    await session.pause();
    await end(fixture, before);
    await fixture.clock.advance(500 * SECOND);
    const after = await fixture.open();
    const found = after.find(fixture.caller, session.id);
    expect([found.describe().state, fixture.host.cells[0]?.isFrozen]).toEqual(['paused', true]);
    await fixture.clock.advance(100 * SECOND);
    expect(commandOf(fixture, 0).heard).toEqual(['eof']);
    await found.resume();
    await fixture.clock.advance(9 * SECOND);
    expect(commandOf(fixture, 0).heard).toEqual(['eof']);
    await fixture.clock.advance(2 * SECOND);
    expect(commandOf(fixture, 0).heard).toContain('terminate');
  });
});

test('[RS-22] a server that stops tells nobody of an end that was none', async () => {
  await using fixture = new SessionFixture();
  const before = await fixture.open();
  const session = await fixture.create(before);
  const goesOn = await begin(session, 'goes on', { background: true });
  const endsJustNow = await begin(session, 'ends just now');
  const seen: string[] = [];
  const followed = (async () => {
    for await (const event of goesOn.follow(0, NEVER)) seen.push(event.type);
    seen.push('over');
  })();
  const replied = endsJustNow.report();
  for (const exec of [goesOn, endsJustNow]) void exec.result.then(({ end }) => seen.push(end.reason));
  await Promise.allSettled([before.close(), replied]);
  commandOf(fixture, 1).exit(0);
  await followed;
  await fixture.driver.close();
  await fixture.clock.advance(SECOND);
  expect(seen).toEqual(['over']);
  await expect(replied).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
  const found = (await fixture.open()).find(fixture.caller, session.id);
  expect((await found.findExec(endsJustNow.id).result).end.reason).toBe('exit');
  expect(found.findExec(goesOn.id).describe().state).toBe('running');
});

describe('what is gone', () => {
  test('[RS-22] a session whose cell is gone is reported as gone with the reason', async () => {
    await using fixture = new SessionFixture();
    const before = await fixture.open();
    const [one, other] = [
      await fixture.create(before, { project: 'one' }),
      await fixture.create(before, { project: 'other' }),
    ];
    await fixture.stop(before);
    for (const cell of fixture.host.cells.slice(0, 1)) cell.isGone = true;
    const after = await fixture.open();
    expect(() => after.find(fixture.caller, one.id)).toThrow(
      expect.objectContaining({ code: 'SESSION_ENDED', message: expect.stringContaining('(cell_lost)') }),
    );
    expect(fixture.volumes.events.slice(-2)).toEqual(['release all', 'reclaim all but 1']);
    await fixture.stop(after);
    for (const cell of fixture.host.cells) cell.isGone = true;
    const later = await fixture.open({ bootId: 'second' });
    expect(() => later.find(fixture.caller, other.id)).toThrow(/\(host_restarted\)/);
    expect(later.stats().ended).toEqual({ host_restarted: 1 });
  });

  test('[RS-22] a command that the cell does not know has ended with the server', async () => {
    await using fixture = new SessionFixture();
    const before = await fixture.open();
    const session = await fixture.create(before);
    const exec = await begin(session, 'long');
    await fixture.crash(before);
    fixture.host.cells[0]?.commands.clear();
    const after = await fixture.open();
    const found = after.find(fixture.caller, session.id);
    const { end, cwd } = await found.findExec(exec.id).result;
    expect([end.reason, cwd]).toEqual(['server_restarted', '/workspace/shop']);
    await begin(found, 'next', { onBusy: 'reject' });
  });

  test('[RS-22] a driver that cannot serve at present costs no session', async () => {
    await using fixture = new SessionFixture();
    const before = await fixture.open();
    const session = await fixture.create(before);
    await fixture.stop(before);
    const down = { code: 'DRIVER_UNAVAILABLE' };
    const adopt = () => Promise.reject(new HotcellError('DRIVER_UNAVAILABLE', 'no engine'));
    const failing = { lasting: { ...fixture.driver.lasting, adopt } };
    const broken = Object.assign(Object.create(fixture.driver) as typeof fixture.driver, failing);
    await expect(fixture.open({ driver: broken })).rejects.toMatchObject(down);
    const after = await fixture.open();
    expect(after.find(fixture.caller, session.id).describe().state).toBe('running');
  });

  test('[SC-02] a server that dies while it makes or ends a session leaves nothing', async () => {
    await using fixture = new SessionFixture();
    const before = await fixture.open();
    const ending = await fixture.create(before, { project: 'ending' });
    before.store.sessions.beginEnd(ending.id, {
      at: fixture.clock.now(),
      reason: 'deleted',
      message: 'deleted on request',
    });
    const making = await fixture.create(before, { project: 'making' });
    const { facts, tenant } = making;
    before.store.sessions.remove(making.id);
    before.store.sessions.begin({ id: making.id, tenant, facts, allow: undefined }, '');
    await fixture.crash(before);
    const after = await fixture.open();
    expect(fixture.host.alive).toEqual([]);
    expect(after.store.sessions.living()).toEqual([]);
    expect(fixture.volumes.events.slice(-3)).toEqual([
      'release dependencies',
      'release nothing',
      'reclaim all but 0',
    ]);
    expect(() => after.find(fixture.caller, ending.id)).toThrow(/\(deleted\)/);
    expect(() => after.find(fixture.caller, making.id)).toThrow(
      expect.objectContaining({ code: 'SESSION_UNKNOWN' }),
    );
  });

  test('[SC-02] commands of ours, and those that had just been started, are ended', async () => {
    await using fixture = new SessionFixture();
    const before = await fixture.open();
    const session = await fixture.create(before);
    const helper = await session.parts.helpers.start({ argv: ['perl', 'helper'], env: {} });
    const unnoted = await begin(session, 'unnoted');
    before.store.execs.remove(unnoted.id);
    await fixture.crash(before);
    const after = await fixture.open();
    const commands = fixture.host.cells[0]?.all ?? [];
    expect(commands.filter(({ isEnded }) => !isEnded)).toEqual([]);
    expect(commands.find(({ id }) => id === helper.lasting?.number)?.heard).toEqual([
      'kill cancelled',
      'forget',
    ]);
    expect(after.store.sessions.helpers(session.id)).toEqual([]);
  });

  test('[SC-02] [RS-05] a torn log loses nothing: the cell says the rest again', async () => {
    await using fixture = new SessionFixture();
    const before = await fixture.open();
    const session = await fixture.create(before);
    const exec = await begin(session, 'talk');
    const command = commandOf(fixture, 0);
    command.say('whole ');
    await vi.waitFor(() => expect(command.noted).toBe(6));
    await fixture.crash(before);
    command.say('torn and more');
    const [label = ''] = readdirSync(join(fixture.folder, 'output'));
    const folder = join(fixture.folder, 'output', label, exec.id);
    appendFileSync(join(folder, readdirSync(folder)[0] ?? ''), Buffer.from([0, 0, 0, 0, 13, 116, 111]));
    const after = await fixture.open();
    const found = after.find(fixture.caller, session.id).findExec(exec.id);
    command.exit(0);
    expect((await found.report()).stdout).toBe('whole torn and more');
    const events: number[] = [];
    for await (const event of found.follow(3, NEVER)) events.push(event.from);
    expect(events).toEqual([3, 19]);
  });
});
