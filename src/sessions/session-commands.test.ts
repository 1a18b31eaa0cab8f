import { describe, expect, test, vi } from 'vitest';
import { begin, insideOf, lastOf, made, toExecRequest } from './session-fixture.double.ts';

const SECOND = 1000;

describe('a command', () => {
  test('[RS-02] [RS-04] is bash -c in the workspace with a fresh environment, and answers with everything', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    fixture.host.program = (command) => {
      command.say('out\n');
      command.say('err\n', 'stderr');
      command.exit(3, { cwd: '/workspace/shop' });
    };
    const exec = await begin(session, 'make', { env: { TOKEN: 'secret' } });
    expect(lastOf(fixture).request).toMatchObject({
      argv: ['bash', '-c'],
      cwd: '/workspace/shop',
      fallbackCwd: '/workspace/shop',
      env: { HOME: '/workspace/.home', TMPDIR: '/tmp', BASH_ENV: '{guest}/session.bash' },
      verbatim: { argv: ['make'], env: { TOKEN: 'secret' } },
    });
    expect(await exec.report()).toMatchObject({
      ok: false,
      stdout: 'out\n',
      stderr: 'err\n',
      exitCode: 3,
      cwd: '/workspace/shop',
      cwdNote: null,
      stdoutBytes: 4,
      stderrBytes: 4,
      cutBytes: 0,
      end: { reason: 'exit', message: 'ended with exit code 3', signal: null, killedBy: null },
    });
    await begin(session, 'env');
    expect(lastOf(fixture).request.verbatim?.env).toEqual({});
    expect(JSON.stringify(fixture.audited)).not.toContain('secret');
  });

  test('[RS-04] cannot be made to run something else first by its variables', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    await begin(session, 'true', { env: { BASH_ENV: '/workspace/evil' } });
    expect(lastOf(fixture).request.env['BASH_ENV']).toBe('{guest}/session.bash');
    expect(lastOf(fixture).request.verbatim?.env).not.toHaveProperty('BASH_ENV');
  });

  test('[RS-03] leaves the session where its shell ended, unless it runs beside others', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const run = async (cwd: string | undefined, rest: object = {}): Promise<string> => {
      fixture.host.program = (command) => command.exit(0, cwd === undefined ? {} : { cwd });
      return (await (await begin(session, 'cd', rest)).result).cwd;
    };
    expect(await run('/workspace/shop/a')).toBe('/workspace/shop/a');
    expect(await run('/tmp', { background: true })).toBe('/workspace/shop/a');
    expect(await run(undefined, { cwd: '../b' })).toBe('/workspace/shop/a');
    expect(lastOf(fixture).request).toMatchObject({
      cwd: '/workspace/shop/b',
      fallbackCwd: '/workspace/shop/b',
    });
    await run(undefined, { resetCwd: true });
    expect(lastOf(fixture).request.cwd).toBe('/workspace/shop');
    for (const hostile of ['relative', '', '/nul\0', `/${'x'.repeat(5000)}`, '/\ud800']) {
      expect(await run(hostile)).toBe('/workspace/shop/a');
    }
    expect(session.describe().cwd).toBe('/workspace/shop/a');
  });

  test('[RS-03] says that its folder had vanished', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    fixture.host.program = (command) => command.exit(0, { cwd: '/workspace/shop', fellBack: true });
    const { cwdNote: note } = await (await begin(session, 'ls')).result;
    expect(note).toBe('/workspace/shop cannot be entered any more; the command began in /workspace/shop');
  });

  test('[RS-02] gets its input and its end; only background commands and terminals keep it open', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const exec = await begin(session, 'cat', { stdin: 'hello' });
    expect([lastOf(fixture).stdin, lastOf(fixture).heard]).toEqual(['hello', ['eof']]);
    expect(() => exec.write(Buffer.from('x'))).toThrow(expect.objectContaining({ code: 'EXEC_ENDED' }));
    const background = await begin(session, 'cat', { background: true });
    background.write(Buffer.from('more'));
    expect([lastOf(fixture).stdin, lastOf(fixture).heard]).toEqual(['more', []]);
    background.closeStdin();
    expect(() => background.write(Buffer.from('x'))).toThrow(expect.objectContaining({ code: 'EXEC_ENDED' }));
    const terminal = await session.openTerminal({ size: { rows: 24, columns: 80 }, env: {} });
    terminal.resize({ rows: 1, columns: 2 });
    terminal.write(Buffer.from('ls\n'));
    expect(lastOf(fixture)).toMatchObject({ stdin: 'ls\n', heard: ['resize'] });
    expect(lastOf(fixture).request).toMatchObject({
      terminal: { rows: 24, columns: 80 },
      env: { TERM: 'xterm-256color' },
    });
    expect(session.execs().map(({ state, kind }) => [state, kind])).toEqual([
      ['running', 'foreground'],
      ['running', 'background'],
      ['running', 'terminal'],
    ]);
  });

  test('[RS-16] that a rule refuses does not run', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    await expect(begin(session, 'curl http://x')).rejects.toMatchObject({
      code: 'COMMAND_REFUSED',
      message: expect.stringContaining('tool-curl'),
    });
    expect(insideOf(fixture)).toEqual([]);
    expect(fixture.audited.at(-1)).toMatchObject({ action: 'refused', outcome: 'COMMAND_REFUSED tool-curl' });
  });

  test('[RS-07] may ask for no more time than the operator grants', async () => {
    const { fixture, session } = await made({ ceilings: { timeoutMs: 60_000 } });
    await using _ = fixture;
    await expect(begin(session, 'true', { timeoutMs: 61_000 })).rejects.toMatchObject({
      code: 'LIMIT_TOO_HIGH',
      field: 'timeout_s',
    });
  });

  test('[RS-02] that does not start has ended, and says why', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    fixture.host.program = (command) => command.lose(new Error('the command did not start: fork'));
    const { end, exitCode: code } = await (await begin(session, 'true')).result;
    expect([end, code]).toMatchObject([
      { reason: 'start_failed', message: 'the command did not start: fork' },
      -1,
    ]);
    expect((await (await begin(session, 'again')).result).end.reason).toBe('start_failed');
  });
});

describe('the time of a command', () => {
  test('[RS-07] is 600 s: then SIGTERM, 5 s later SIGKILL', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const exec = await begin(session, 'sleep infinity');
    const command = lastOf(fixture);
    command.onTerminate = () => command.say('I will not go');
    await fixture.clock.advance(599.9 * SECOND);
    expect(command.heard).toEqual(['eof']);
    await fixture.clock.advance(0.2 * SECOND);
    expect(command.heard).toEqual(['eof', 'terminate']);
    await fixture.clock.advance(4.8 * SECOND);
    expect(command.isEnded).toBe(false);
    await fixture.clock.advance(0.2 * SECOND);
    expect(command.heard).toEqual(['eof', 'terminate', 'kill wallTimeMs', 'forget']);
    expect(await exec.report()).toMatchObject({
      ok: false,
      exitCode: 124,
      stdout: 'I will not go',
      end: { reason: 'timeout', message: 'timed out after 600 seconds', signal: 'SIGKILL' },
    });
  });

  test('[RS-07] a command that obeys was ended by its timeout all the same', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const exec = await begin(session, 'trap "exit 0" TERM; sleep 9', { timeoutMs: 1000 });
    const command = lastOf(fixture);
    command.onTerminate = () => command.exit(0);
    await fixture.clock.advance(SECOND);
    expect(await exec.result).toMatchObject({
      ok: false,
      exitCode: 124,
      end: { reason: 'timeout', signal: 'SIGTERM' },
    });
  });

  test('[RS-07] stands still during a pause', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    await begin(session, 'sleep 9', { timeoutMs: 10_000 });
    const command = lastOf(fixture);
    await fixture.clock.advance(9 * SECOND);
    expect([command.deadline?.afterMs, fixture.host.cells[0]?.endsAfterMs]).toEqual([
      expect.any(Number),
      expect.any(Number),
    ]);
    await session.pause();
    expect(fixture.host.cells[0]?.isFrozen).toBe(true);
    // Whoever thaws it, perhaps another server, must not find that time was over long ago.
    expect([command.deadline, fixture.host.cells[0]?.endsAfterMs]).toEqual([undefined, undefined]);
    await fixture.clock.advance(100 * SECOND);
    expect(command.heard).toEqual(['eof']);
    await expect(begin(session, 'true')).rejects.toMatchObject({ code: 'SESSION_PAUSED' });
    await expect(session.kill()).rejects.toMatchObject({ code: 'SESSION_PAUSED' });
    await session.resume();
    expect(fixture.host.cells[0]?.isFrozen).toBe(false);
    expect(command.deadline?.afterMs).toBe(1000 + 5000 + 10_000);
    await fixture.clock.advance(0.9 * SECOND);
    expect(command.heard).toEqual(['eof']);
    await fixture.clock.advance(0.2 * SECOND);
    expect(command.heard).toContain('terminate');
  });
});

describe('a cell without a server', () => {
  test('[RS-07, RS-22] knows the deadline of each command, a while after that of the server', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    await begin(session, 'sleep 9', { timeoutMs: 60_000 });
    expect(lastOf(fixture).deadline).toEqual({ afterMs: 60_000 + 5000 + 10_000, graceMs: 5000 });
  });

  test('[RS-18, RS-22] knows its own end, which follows the life of the session', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const [ttl, abandoned] = [30 * 60 * SECOND, 10 * 60 * SECOND];
    expect(fixture.host.cells[0]?.endsAfterMs).toBe(ttl + abandoned);
    await fixture.clock.advance(20 * SECOND);
    expect(fixture.host.cells[0]?.endsAfterMs).toBe(ttl + abandoned - 20 * SECOND);
    await begin(session, 'long', { timeoutMs: 3 * ttl });
    await fixture.clock.advance(5 * SECOND);
    expect(fixture.host.cells[0]?.endsAfterMs).toBe(3 * ttl - 5 * SECOND + ttl + abandoned);
  });
});

describe('two commands at once', () => {
  test('[RS-21] the second waits for its turn, in order', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const first = await begin(session, 'first');
    const second = begin(session, 'second');
    const third = begin(session, 'third');
    await vi.waitFor(() =>
      expect(session.execs().map(({ state }) => state)).toEqual(['running', 'waiting', 'waiting']),
    );
    expect(insideOf(fixture).map(({ text }) => text)).toEqual(['first']);
    lastOf(fixture).exit(0, { cwd: '/workspace/shop/sub' });
    await first.result;
    await second;
    expect(insideOf(fixture).map(({ text }) => text)).toEqual(['first', 'second']);
    expect(lastOf(fixture).request.cwd).toBe('/workspace/shop/sub');
    lastOf(fixture).exit(0);
    await third;
    expect(insideOf(fixture).map(({ text }) => text)).toEqual(['first', 'second', 'third']);
  });

  test('[RS-21] or is refused, by choice of the caller, or because too many wait', async () => {
    const { fixture, session } = await made({ queue: 1 });
    await using _ = fixture;
    await begin(session, 'first');
    await expect(begin(session, 'second', { onBusy: 'reject' })).rejects.toMatchObject({
      code: 'SESSION_BUSY',
    });
    const waiting = begin(session, 'second');
    await expect(begin(session, 'third')).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    lastOf(fixture).exit(0);
    await waiting;
    expect(insideOf(fixture)).toHaveLength(2);
  });

  test('[RS-21] a caller who goes away while waiting is taken out of the queue', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const first = await begin(session, 'first');
    const leaving = new AbortController();
    const second = session.exec(toExecRequest('second'), leaving.signal);
    const third = begin(session, 'third');
    leaving.abort();
    await expect(second).rejects.toMatchObject({ code: 'CANCELLED' });
    lastOf(fixture).exit(0);
    await first.result;
    await third;
    expect(insideOf(fixture).map(({ text }) => text)).toEqual(['first', 'third']);
  });

  test('[RS-21] background commands run beside, as many as the operator allows', async () => {
    const { fixture, session } = await made({ beside: 2 });
    await using _ = fixture;
    await begin(session, 'first');
    await begin(session, 'server', { background: true });
    await begin(session, 'watcher', { background: true });
    await expect(begin(session, 'more', { background: true })).rejects.toMatchObject({
      code: 'SESSION_BUSY',
    });
    expect(insideOf(fixture)).toHaveLength(3);
  });
});

describe('a kill', () => {
  test('[RS-12] ends what is in the foreground, also what waits, and nothing else', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const running = await begin(session, 'running');
    const waiting = begin(session, 'waiting');
    const server = await begin(session, 'server', { background: true });
    expect(await session.kill()).toContain(running.id);
    expect((await running.result).end).toMatchObject({
      reason: 'killed',
      killedBy: 'request',
      signal: 'SIGKILL',
    });
    expect((await (await waiting).result).end).toMatchObject({ reason: 'killed', killedBy: 'request' });
    expect(insideOf(fixture).map(({ text }) => text)).toEqual(['running', 'server']);
    expect(server.describe().state).toBe('running');
    expect(await session.kill()).toEqual([]);
    await session.findExec(server.id).kill();
    expect((await server.result).end.reason).toBe('killed');
  });

  test('[RS-12] is not blamed for a command that had ended', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const exec = await begin(session, 'true');
    lastOf(fixture).exit(0);
    await exec.kill();
    expect((await exec.result).end.reason).toBe('exit');
  });
});
