import { afterAll, beforeAll, expect, test } from 'vitest';
import { TerminalClient } from '../../../src/http/sessions/terminal-client.double.ts';
import { waitFor } from '../../support/leftovers.ts';
import { FRESH_WAYS, describeEach } from '../../support/served-by.ts';
import type { TestServer } from '../../support/server.ts';
import {
  openSession,
  startSessionServer,
  stopSessionServer,
  type TestSession,
} from '../../support/sessions.ts';

async function open(session: TestSession, query = ''): Promise<TerminalClient> {
  const url = session.server.url.replace(/^http/, 'ws');
  const client = new TerminalClient(`${url}${session.path}/terminal${query}`);
  await client.opened;
  await waitFor('the terminal says that it is ready', () => client.control[0]?.['type'] === 'ready');
  return client;
}

function shows(client: TerminalClient, text: string): Promise<void> {
  return waitFor(`the terminal shows ${JSON.stringify(text)}`, () => client.output.includes(text)).catch(
    (error: unknown) => {
      throw new Error(`it shows ${JSON.stringify(client.output)}`, { cause: error });
    },
  );
}

const idOf = ({ control }: TerminalClient): string => String(control[0]?.['exec_id']);

describeEach(FRESH_WAYS, (way) => {
  let server: TestServer;
  let session: TestSession;
  beforeAll(async () => {
    server = await startSessionServer(way);
    session = await openSession(server);
  });
  afterAll(() => stopSessionServer(server));

  test('[TM-01] a shell: what is typed is echoed and done, in the folder of the session', async () => {
    await session.exec('mkdir -p place && cd place');
    using viewer = await open(session);
    viewer.type('tty; echo "$((6 * 7)) $PWD $TERM"\r');
    await shows(viewer, `42 ${session.workspace}/place xterm-256color\r\n`);
    expect(viewer.output).toContain('tty; echo "$((6 * 7)) $PWD $TERM"\r\n');
    expect(viewer.output).toMatch(/\/dev\/pts\/\d+\r\n/);
    expect(await session.execs()).toContainEqual(
      expect.objectContaining({ exec_id: idOf(viewer), terminal: true, state: 'running' }),
    );
    // A terminal runs beside commands, and its folder is its own.
    viewer.type('cd /; echo mo""ved\r');
    await shows(viewer, 'moved\r\n');
    expect(await session.print('pwd')).toBe(`${session.workspace}/place\n`);
    viewer.type('exit 3\r');
    expect(await viewer.closed).toMatchObject({ code: 1000 });
    expect(viewer.control.at(-1)).toMatchObject({
      type: 'exit',
      result: { exit_code: 3, end: { reason: 'exit' }, ok: false },
    });
  });

  test('[TM-01] it has the size that is asked for, and hears of another one', async () => {
    using viewer = await open(session, '?rows=31&cols=97');
    viewer.type('trap "echo re""sized" WINCH; stty size\r');
    await shows(viewer, '31 97\r\n');
    viewer.say({ type: 'resize', rows: 50, cols: 132 });
    // The shell runs its trap when it has something to do.
    viewer.type('stty size\r');
    await shows(viewer, '50 132\r\n');
    await shows(viewer, 'resized\r\n');
    viewer.say({ type: 'kill' });
    await viewer.closed;
  });

  test('[TM-01] Ctrl-C ends the program and not the shell, Ctrl-D the shell', async () => {
    using viewer = await open(session);
    // By the program itself, which has the terminal then: a shell that is about to start one would not hand it on.
    viewer.type(`sh -c 'echo sta""rt; exec sleep 1000'; echo "status $?"\r`);
    await shows(viewer, 'start\r\n');
    viewer.type('\u0003');
    await shows(viewer, '^C');
    viewer.type('echo "after $?"\r');
    await shows(viewer, 'after 130\r\n');
    viewer.type('\u0004');
    await viewer.closed;
    expect(viewer.control.at(-1)).toMatchObject({ type: 'exit', result: { end: { reason: 'exit' } } });
  });

  test('[TM-01] two viewers see the same, and both can type', async () => {
    using first = await open(session);
    first.type('echo fi""rst\r');
    await shows(first, 'first\r\n');
    using second = await open(session, `?exec_id=${idOf(first)}&from=0`);
    second.type('echo sec""ond\r');
    await Promise.all([first, second].map((viewer) => shows(viewer, 'second\r\n')));
    second.type('exit\r');
    await Promise.all([first.closed, second.closed]);
    expect(second.output).toBe(first.output);
    expect(second.control.at(-1)).toEqual(first.control.at(-1));
  });

  test('[TM-01] a connection that drops takes nothing with it: who comes back sees what it missed', async () => {
    const first = await open(session);
    const id = idOf(first);
    first.type('echo be""fore; until [ -e go ]; do sleep 0.02; done; echo af""ter\r');
    await shows(first, 'before\r\n');
    const seen = first.output.length;
    first.socket.close();
    await first.closed;
    await session.print({ command: 'touch place/go go', reset_cwd: true });
    await session.untilOutput(id, seen + 'after\r\n'.length);
    using again = await open(session, `?exec_id=${id}`);
    await shows(again, 'after\r\n');
    expect(again.output.startsWith(first.output)).toBe(true);
    // From a place of its choice: what it has seen already does not come again.
    using rest = await open(session, `?exec_id=${id}&from=${seen}`);
    await shows(rest, 'after\r\n');
    expect(first.output + rest.output).toBe(again.output);
    again.type('exit\r');
    await again.closed;
    // Also after the end.
    using late = await open(session, `?exec_id=${id}`);
    await late.closed;
    expect(late.output).toBe(again.output);
    expect(late.control.at(-1)).toMatchObject({ type: 'exit' });
  });

  test('[TM-01] bytes of every value pass in both directions', async () => {
    using viewer = await open(
      session,
      `?command=${encodeURIComponent('stty raw -echo; echo ready; head -c 256 | od -An -v -tu1 -w256; printf "\\xff\\x00\\xfe"')}`,
    );
    await shows(viewer, 'ready');
    const all = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
    viewer.socket.send(all);
    await viewer.closed;
    expect(viewer.output.replace('ready', '').trim().split(/\s+/).slice(0, 256).map(Number)).toEqual([
      ...all,
    ]);
    expect(viewer.output.endsWith('\u00ff\0\u00fe')).toBe(true);
  });

  test.each([
    ['a command without a terminal', async (one: TestSession) => `?exec_id=${await one.begin('sleep 1000')}`],
    ['a terminal that is not there', () => '?exec_id=exec_0000000000000000'],
    ['no size at all', () => '?rows=0&cols=80'],
    ['a blocked tool', () => `?command=${encodeURIComponent('curl localhost')}`],
  ])('[TM-01] %s is refused', async (_name, toQuery) => {
    await using own = await openSession(server);
    const url = server.url.replace(/^http/, 'ws');
    using client = new TerminalClient(`${url}${own.path}/terminal${await toQuery(own)}`);
    await expect(client.opened).rejects.toThrow('refused');
    expect((await own.execs()).filter(({ terminal }) => terminal)).toEqual([]);
  });
});
