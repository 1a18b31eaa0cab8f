import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KillReply, OutputReply, StdinReply } from '../../../src/wire/session-exec.ts';
import { waitFor } from '../../support/leftovers.ts';
import { FRESH_WAYS, describeEach } from '../../support/served-by.ts';
import type { TestServer } from '../../support/server.ts';
import {
  call,
  openSession,
  startSessionServer,
  stopSessionServer,
  type TestSession,
} from '../../support/sessions.ts';

/** Of `ls -l /proc/self/fd`: all but the one by which `ls` looks at that folder. */
function ownFds(listing: string): number[] {
  const links = [...listing.matchAll(/ (\d+) -> (.*)$/gm)];
  const own = links.filter(([, , to = '']) => !/^\/proc\/\d+\/fd$/.test(to));
  expect(links.length - own.length).toBe(1);
  return own.map(([, number]) => Number(number)).toSorted((one, other) => one - other);
}

describeEach(FRESH_WAYS, (way) => {
  let server: TestServer;
  let session: TestSession;
  beforeAll(async () => {
    server = await startSessionServer(way);
    session = await openSession(server);
  });
  afterAll(() => stopSessionServer(server));

  test('[RS-01] a session has an id, and a workspace called after its project', async () => {
    const body = { project_id: 'proj_abc123', runtime_type: 'shell', user_id: 'ada' };
    const answer = await call(server, 'POST', '/v1/sessions', { body });
    expect([answer.status, answer.body]).toEqual([
      201,
      expect.objectContaining({
        session_id: expect.stringMatching(/^session_[0-9a-f]{32}$/),
        workspace_path: '/workspace/proj_abc123',
        cwd: '/workspace/proj_abc123',
        user_id: 'ada',
        state: 'running',
        isolation: expect.objectContaining({ driver: way.driver }),
      }),
    ]);
  });

  test.each(['', '.', '..', '../x', 'a/b', '-rf', 'a b', 'a\0', 'é', 'x'.repeat(65)])(
    '[RS-01] the project id %j is refused',
    async (id) => {
      const body = { project_id: id, runtime_type: 'shell' };
      const { refusal } = await call(server, 'POST', '/v1/sessions', { body });
      expect(refusal).toMatchObject({ status: 422, code: 'INVALID_REQUEST', field: 'project_id' });
    },
  );

  test('[RS-02] a reply has both outputs apart, the exit code, the folder and the time', async () => {
    const reply = await session.exec('echo out; echo err >&2; exit 3');
    expect(reply).toMatchObject({
      ok: false,
      stdout: 'out\n',
      stderr: 'err\n',
      exit_code: 3,
      cwd: session.workspace,
      cwd_note: null,
      end: { reason: 'exit', message: 'ended with exit code 3', signal: null, killed_by: null },
    });
    expect(reply.duration_ms).toBeGreaterThan(0);
    expect((await session.exec('true')).ok).toBe(true);
  });

  test.each([
    ['$0 $#', 'bash 0\n', 'echo $0 $#'],
    ['bashisms', 'b\n', 'x=(a b); echo "${x[1]}"'],
    ['several lines', '1\n2\n', 'echo 1\n\necho 2'],
    ['a comment at the end', '1\n', 'echo 1 # done'],
    ['quotes', `it's "so"\n`, `echo "it's \\"so\\""`],
    ['a here-document', 'in\n', 'cat <<END\nin\nEND'],
    ['a pipe that fails on the left', '0\n', 'false | true; echo $?'],
    ['long ones', '100000\n', `x='${'x'.repeat(100_000)}'; echo \${#x}`],
  ])('[RS-02] it is bash -c: %s', async (_name, stdout, command) => {
    expect(await session.print(command)).toBe(stdout);
  });

  test('[RS-02] standard input is what the request says, or empty', async () => {
    const stdin = `first\0line\nü€👩\n${'x'.repeat(200_000)}`;
    expect(await session.print({ command: 'cat', stdin })).toBe(stdin);
    expect(await session.print({ command: 'cat; echo done' })).toBe('done\n');
    // Whoever does not read it is not disturbed.
    expect(await session.print({ command: 'echo done', stdin })).toBe('done\n');
  });

  describe('a program has no descriptor but its three', () => {
    const LOOK = 'ls -l /proc/self/fd';
    const WAYS: readonly (readonly [string, string])[] = [
      ['a child', LOOK],
      ['a child of another shell', `bash -c '${LOOK}; true'`],
      ['a subshell', `(${LOOK}; true)`],
      ['a pipe', `${LOOK} | cat`],
      ['a substitution', `echo "$(${LOOK})"`],
      ['a redirected group', `{ ${LOOK}; } 2>&1 >seen; cat seen`],
      ['a background child', `${LOOK} >seen & wait; cat seen`],
      ['a child of a background child', `(bash -c '${LOOK}; true' >deep) & wait; cat deep`],
      ['one in a session of its own', `setsid -w bash -c '${LOOK}; true'`],
      ['one that takes the place of the shell', `exec ${LOOK}`],
      ['a trap', `trap '${LOOK}' USR1; kill -USR1 $$`],
      ['the end', `trap '${LOOK}' EXIT`],
    ];

    test.each(WAYS)('[RS-02, SC-03] %s', async (_, command) => {
      expect(ownFds(await session.print(command))).toEqual([0, 1, 2]);
      const id = await session.begin(command);
      expect((await session.find(id, 30)).state).toBe('ended');
      const { chunks } = (await session.get(`/execs/${id}/output`)).as(OutputReply);
      expect(ownFds(chunks.map(({ data }) => data).join(''))).toEqual([0, 1, 2]);
    });
  });

  describe('the folder', () => {
    const STEPS: readonly (readonly [string, string])[] = [
      ['mkdir -p a/b "sp ace" && cd a && ls', 'a'],
      ['pwd >/dev/null; true', 'a'],
      ['(cd b && pwd)', 'a'],
      ['bash -c "cd b"', 'a'],
      ['pushd b >/dev/null', 'a/b'],
      ['cd .. && pushd b >/dev/null && popd >/dev/null', 'a'],
      ['cd b; false', 'a/b'],
      ['cd ../..; exit 7', ''],
      ['f() { cd "sp ace"; }; f', 'sp ace'],
      ['cd nowhere', 'sp ace'],
      ['cd nowhere || true', 'sp ace'],
      ['cd ..', ''],
      ['exec env -C a true', ''],
      ['set -e; cd a; false; cd b', 'a'],
      ['cd /tmp', '/tmp'],
      ['cd - >/dev/null || cd "$HOME"', '/workspace/.home'],
      ['cd "$OLDPWD" 2>/dev/null; cd / && :', '/'],
    ];

    test('[RS-03] is where the last command ended', async () => {
      await using own = await openSession(server);
      for (const [command, place] of STEPS) {
        const expected = place.startsWith('/') ? place : `${own.workspace}${place === '' ? '' : `/${place}`}`;
        const { cwd } = await own.exec(command);
        const seen = { command, cwd, pwd: (await own.print('pwd')).trimEnd() };
        expect(seen).toEqual({ command, cwd: expected, pwd: expected });
      }
      expect((await own.detail()).cwd).toBe('/');
    });

    test('[RS-03] a command that cannot change it says so as a shell does', async () => {
      const { stderr, exit_code: exitCode } = await session.exec({ command: 'cd nowhere', reset_cwd: true });
      expect([stderr, exitCode]).toEqual([expect.stringContaining('nowhere: No such file'), 1]);
    });

    test('[RS-03] one that vanished falls back to the workspace, and says so', async () => {
      await using own = await openSession(server);
      await own.exec('mkdir gone && cd gone');
      await own.exec('rmdir "$PWD"');
      const reply = await own.exec('pwd');
      expect(reply).toMatchObject({ ok: true, stdout: `${own.workspace}\n`, cwd: own.workspace });
      expect(reply.cwd_note).toContain(`${own.workspace}/gone`);
      expect((await own.exec('true')).cwd_note).toBeNull();
    });

    test('[RS-02, RS-03] reset_cwd and cwd say where a command begins', async () => {
      await using own = await openSession(server);
      await own.exec('mkdir -p a/b && cd a');
      expect(await own.print({ command: 'pwd; cd -P .', cwd: 'b' })).toBe(`${own.workspace}/a/b\n`);
      expect(await own.print({ command: 'pwd', reset_cwd: true, cwd: 'a' })).toBe(`${own.workspace}/a\n`);
      expect(await own.print({ command: 'pwd', reset_cwd: true })).toBe(`${own.workspace}\n`);
      expect(await own.print({ command: 'pwd', cwd: '/tmp' })).toBe('/tmp\n');
      // Whoever names a folder does not want the command to run in another one.
      const nowhere = await own.exec({ command: 'touch ran', cwd: '/workspace/nowhere' });
      expect(nowhere).toMatchObject({ ok: false, exit_code: 127, cwd: '/tmp' });
      expect(nowhere.stderr).toContain('/workspace/nowhere: No such file or directory');
      expect(nowhere.cwd_note).toBe('/workspace/nowhere cannot be entered; the command did not begin');
      expect(await own.print({ command: 'ls', reset_cwd: true })).toBe('a\n');
    });
  });

  describe('the environment', () => {
    test('[RS-04] does not outlive a command', async () => {
      await session.exec('export A=1; B=2; alias c=d; set -f; umask 077');
      const found = await session.print('echo "${A-none} ${B-none} $(alias) $- $(umask)"');
      expect(found).toBe('none none  hBc 0022\n');
    });

    test('[RS-04] is that of the session and of the request, and nothing of the server', async () => {
      const env = { NODE_ENV: 'test', EMPTY: '', SPECIAL: `a'b"c $x \n\t é`, LANG: 'C' };
      const found = await session.print({ command: 'env -0', env });
      const variables = new Map(
        found.split('\0').map((line) => [line.split('=', 1)[0] ?? '', line.slice(line.indexOf('=') + 1)]),
      );
      for (const [name, value] of Object.entries(env))
        expect([name, variables.get(name)]).toEqual([name, value]);
      expect(variables.get('HOME')).toBe('/workspace/.home');
      expect([...variables.keys()].filter((name) => /HOTCELL|DOCKER|BASH_ENV|MALLOC|UV_/.test(name))).toEqual(
        [],
      );
    });

    test('[RS-04] .env is loaded where the session asks for it, and the request wins', async () => {
      await using asks = await openSession(server, { dotenv: true });
      const lines = '# a comment\nexport A=file\nB="two words"\nC=$(touch ran)\nHOME=/elsewhere\n';
      for (const one of [asks, session])
        await one.post('/upload', { files: [{ path: '.env', content: lines }] });
      const command = 'echo "${A-none}|${B-none}|${C-none}|$HOME"; ls';
      expect(await asks.print(command)).toBe('file|two words|$(touch ran)|/elsewhere\n');
      expect(await asks.print({ command: 'echo $A $B', env: { A: 'request' } })).toBe('request two words\n');
      expect(await session.print({ command: 'echo "${A-none}"', reset_cwd: true })).toBe('none\n');
      await asks.exec('cd /tmp');
      expect(await asks.print('echo $A')).toBe('file\n');
      await asks.exec({ command: 'rm .env', reset_cwd: true });
      expect(await asks.print('echo "${A-none}"')).toBe('none\n');
    });
  });

  describe('two commands at once', () => {
    test('[RS-21] the second waits or is refused, as it likes', async () => {
      await using own = await openSession(server);
      const first = 'echo started; cd /tmp; until [ -e "$OLDPWD/go" ]; do sleep 0.02; done';
      const running = own.exec(first);
      await own.untilRunning(first);
      const { refusal } = await own.post('/exec', { command: 'touch ran', on_busy: 'reject' });
      expect(refusal).toMatchObject({ status: 409, code: 'SESSION_BUSY' });
      const waiting = own.exec({ command: 'pwd; ls "$OLDPWD" 2>&1', on_busy: 'wait' });
      await waitFor('the second waits', async () =>
        (await own.execs()).some(({ state }) => state === 'waiting'),
      );
      await own.post('/upload', { files: [{ path: 'go', content: '' }] });
      expect((await running).stdout).toBe('started\n');
      // It begins where the first one ended, not where that was when it came.
      expect((await waiting).stdout.split('\n')[0]).toBe('/tmp');
      expect(await own.print({ command: 'ls', reset_cwd: true })).toBe('go\n');
    });

    test('[RS-21] many at once: their steps never mix, and none loses the folder of another', async () => {
      await using own = await openSession(server);
      const command = 'mkdir d && cd d; echo begin >> /tmp/log; sleep 0.02; echo end >> /tmp/log';
      const replies = await Promise.all(Array.from({ length: 12 }, () => own.exec(command)));
      const depths = replies.map(({ cwd }) => cwd.split('/d').length - 1);
      expect(depths.toSorted((one, other) => one - other)).toEqual(replies.map((_, index) => index + 1));
      expect(await own.print('cat /tmp/log')).toBe('begin\nend\n'.repeat(replies.length));
    });
  });

  describe('commands in the background', () => {
    test('[RS-02] are listed, fed, waited for, and have their own end', async () => {
      await using own = await openSession(server);
      const command = 'cd /tmp; while read -r line; do echo "got $line"; done; echo over; exit 5';
      const id = await own.begin(command);
      expect(await own.execs()).toEqual([
        expect.objectContaining({ exec_id: id, command, background: true, state: 'running', result: null }),
      ]);
      expect(await own.print('pwd')).toBe(`${own.workspace}\n`);
      const fed = await own.post(`/execs/${id}/stdin`, { data: 'one\n' });
      expect(fed.as(StdinReply)).toEqual({ written: 4 });
      await own.untilOutput(id, 'got one\n'.length);
      const waiting = own.find(id, 30);
      await own.post(`/execs/${id}/stdin`, {
        data: Buffer.from('two\n').toString('base64'),
        encoding: 'base64',
        eof: true,
      });
      expect(await waiting).toMatchObject({
        state: 'ended',
        result: { ok: false, exit_code: 5, end: { reason: 'exit' }, stdout_bytes: 21, cwd: own.workspace },
      });
      const late = await own.post(`/execs/${id}/stdin`, { data: 'three\n' });
      expect(late.refusal).toMatchObject({ status: 409, code: 'EXEC_ENDED' });
      // Where it was is no business of the others.
      expect((await own.detail()).cwd).toBe(own.workspace);
    });

    test('[RS-12] one of them is killed by its id, and only that one', async () => {
      await using own = await openSession(server);
      const [first, second] = await Promise.all([own.begin('sleep 1000'), own.begin('sleep 1000')]);
      const killed = (await own.post(`/execs/${first}/kill`)).as(KillReply);
      expect(killed).toEqual({ killed: true, exec_ids: [first] });
      expect((await own.find(first, 10)).result).toMatchObject({
        exit_code: 130,
        end: { reason: 'killed', signal: 'SIGKILL', killed_by: 'request', message: 'killed on request' },
      });
      expect((await own.find(second)).state).toBe('running');
      expect((await own.post(`/execs/${first}/kill`)).as(KillReply)).toEqual({ killed: false, exec_ids: [] });
      const { refusal } = await own.get('/execs/exec_0000000000000000');
      expect(refusal).toMatchObject({ status: 404, code: 'EXEC_UNKNOWN' });
    });
  });
});
