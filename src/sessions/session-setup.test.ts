import { describe, expect, test, vi } from 'vitest';
import { insideOf, lastOf, made, begin } from './session-fixture.double.ts';

const SECOND = 1000;
const NODE = { runtime: 'node', setup: true } as const;
const isSetup = (text: string): boolean => text.includes('npm install');

describe('a session that asks for the set-up command', () => {
  test('[RS-19] runs it before the command, in the workspace, and tells its output as stderr', async () => {
    const { fixture, session } = await made({}, NODE);
    await using _ = fixture;
    fixture.host.program = (command) => {
      command.say(isSetup(command.text) ? 'added 1 package\n' : 'ran\n');
      command.exit(0, { cwd: '/workspace/shop/sub' });
    };
    const exec = await begin(session, 'npm test', { env: { CI: '1' }, stdin: 'input' });
    expect(await exec.report()).toMatchObject({
      ok: true,
      stdout: 'ran\n',
      stderr: 'added 1 package\n',
      stderrBytes: 16,
    });
    const [setup, command, ...others] = insideOf(fixture);
    expect(others).toEqual([]);
    expect(setup?.request).toMatchObject({ cwd: '/workspace/shop' });
    expect([setup?.stdin, command?.stdin, command?.text]).toEqual(['', 'input', 'npm test']);
    expect(setup?.heard).toEqual(['eof', 'forget']);
    expect(session.describe().cwd).toBe('/workspace/shop/sub');
  });

  test('[RS-19] does not begin the command when that fails', async () => {
    const { fixture, session } = await made({}, NODE);
    await using _ = fixture;
    fixture.host.program = (command) => {
      command.say('no such package\n');
      command.exit(254);
    };
    const reply = await (await begin(session, 'npm test')).report();
    expect(reply).toMatchObject({
      ok: false,
      exitCode: 254,
      stdout: '',
      stderr: 'no such package\n',
      end: {
        reason: 'exit',
        message: expect.stringMatching(/^the set-up command failed, so the command did not begin/),
      },
    });
    expect(insideOf(fixture)).toHaveLength(1);
    expect(session.describe().cwd).toBe('/workspace/shop');
  });

  test('[RS-19] [RS-07] [RS-12] can be killed, and runs out of time, during it', async () => {
    const { fixture, session } = await made({}, NODE);
    await using _ = fixture;
    const killed = await begin(session, 'npm test');
    await killed.kill();
    expect((await killed.result).end).toMatchObject({ reason: 'killed', killedBy: 'request' });
    const late = await begin(session, 'npm test', { timeoutMs: 5000 });
    await fixture.clock.advance(5 * SECOND);
    expect((await late.result).end.reason).toBe('timeout');
    expect(insideOf(fixture).every(({ text }) => isSetup(text))).toBe(true);
  });

  test('[RS-19] one time for both: the command has what the set-up left', async () => {
    const { fixture, session } = await made({}, NODE);
    await using _ = fixture;
    const exec = await begin(session, 'npm test', { timeoutMs: 10_000 });
    await fixture.clock.advance(8 * SECOND);
    lastOf(fixture).exit(0);
    await vi.waitFor(() => expect(insideOf(fixture)).toHaveLength(2));
    await fixture.clock.advance(1 * SECOND);
    expect(lastOf(fixture).heard).toEqual(['eof']);
    await fixture.clock.advance(1 * SECOND);
    expect((await exec.result).end.reason).toBe('timeout');
  });

  test('[RS-19] [RS-22] a restart during it ends the command, whose variables nobody has any more', async () => {
    const { fixture, session } = await made({}, NODE);
    await using _ = fixture;
    const exec = await begin(session, 'npm test', { env: { TOKEN: 'secret' } });
    lastOf(fixture).say('half ');
    await vi.waitFor(() => expect(exec.outputBytes).toBe(5));
    await fixture.crashAll();
    lastOf(fixture).say('done');
    lastOf(fixture).exit(0);
    const found = (await fixture.open()).find(fixture.caller, session.id);
    const reply = await found.findExec(exec.id).report();
    expect(reply).toMatchObject({ ok: false, stderr: 'half done', end: { reason: 'server_restarted' } });
    expect(insideOf(fixture)).toHaveLength(1);
  });

  test('[RS-19] [RS-22] after a restart during the command only its own output counts towards where it is', async () => {
    const { fixture, session } = await made({}, NODE);
    await using _ = fixture;
    const exec = await begin(session, 'npm test');
    lastOf(fixture).say('set up\n');
    lastOf(fixture).exit(0);
    await vi.waitFor(() => expect(insideOf(fixture)).toHaveLength(2));
    lastOf(fixture).say('one ');
    await vi.waitFor(() => expect(lastOf(fixture).noted).toBe(4));
    await fixture.crashAll();
    lastOf(fixture).say('two');
    lastOf(fixture).exit(0);
    const found = (await fixture.open()).find(fixture.caller, session.id);
    expect(await found.findExec(exec.id).report()).toMatchObject({
      ok: true,
      stdout: 'one two',
      stderr: 'set up\n',
    });
  });

  test('[RS-19] of a template without one begins at once', async () => {
    const { fixture, session } = await made({}, { setup: true });
    await using _ = fixture;
    await begin(session, 'true');
    expect(insideOf(fixture).map(({ text }) => text)).toEqual(['true']);
  });
});
