import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ScriptedServer } from '../http/scripted-server.double.ts';
import { SESSION } from '../http/sessions/scripted-sessions.double.ts';
import { HttpRunnerClient, bytesOfChunk } from './http-runner-client.ts';

const QUICK = { firstDelayMs: 1, longestDelayMs: 4 };

let server: ScriptedServer;
let client: HttpRunnerClient;
beforeEach(async () => {
  server = await ScriptedServer.start();
  client = new HttpRunnerClient({ baseUrl: `http://127.0.0.1:${server.port}/`, retries: QUICK });
});
afterEach(() => server[Symbol.asyncDispose]());

const calls = (): unknown[][] => server.sessions.session.calls;

describe('every call', () => {
  test('[RS-20] reaches its route, and its reply is that of the wire', async () => {
    const session = await client.createSession('proj', 'node', { network: ['npm'], user_id: 'ada' });
    expect(session).toMatchObject({ session_id: SESSION, workspace_path: '/workspace/proj_abc123' });
    expect(server.sessions.created[0]).toMatchObject({
      project: 'proj',
      runtime: 'node',
      network: ['npm'],
      user: 'ada',
    });
    expect(await client.listSessions()).toHaveLength(1);
    expect((await client.getSession(SESSION)).usage).toMatchObject({ processes: 3 });
    expect((await client.pause(SESSION)).state).toBe('paused');
    expect((await client.resume(SESSION)).state).toBe('running');
    await client.keepAlive(SESSION);
    await client.killProcess(SESSION);
    expect(
      await client.upload(SESSION, [
        { path: 'a', content: 'x', mode: 0o755 },
        { path: 'b', content: Uint8Array.of(255) },
      ]),
    ).toBe(2);
    expect(await client.changes(SESSION, 'c 1&')).toHaveProperty('cursor');
    expect(await client.applyPatch(SESSION, '--- a')).toMatchObject({ success: true });
    expect(await client.getEgress(SESSION)).toHaveProperty('enabled');
    expect((await client.setEgress(SESSION, ['npm'])).allow).toEqual(['npm']);
    await client.destroySession(SESSION);
    expect(calls()).toEqual([
      ['detail'],
      ['pause'],
      ['resume'],
      ['keepAlive'],
      ['kill'],
      [
        'upload',
        [
          { path: 'a', content: 'x', encoding: 'utf8', mode: 0o755 },
          { path: 'b', content: '/w==', encoding: 'base64' },
        ],
      ],
      ['changes', 'c 1&'],
      ['applyPatch', '--- a'],
      ['egress'],
      ['setEgress', ['npm']],
      ['destroy'],
    ]);
  });

  test('[RS-20] commands: exec, background, list, wait, output, stdin, kill', async () => {
    const { session } = server.sessions;
    session.onExec = (exec) => {
      if (exec.kind === 'background') return;
      exec.print('stdout', 'out €\n');
      exec.print('stderr', Buffer.from([0xff]));
      exec.end({ exitCode: 3, ok: false });
    };
    expect(await client.exec(SESSION, { command: 'x', env: { A: 'b' } })).toMatchObject({
      stdout: 'out €\n',
      stderr: '\ufffd',
      exit_code: 3,
      ok: false,
      output_cut_bytes: 0,
    });
    const id = await client.startBackground(SESSION, { command: 'server' });
    expect((await client.listExecs(SESSION)).map(({ state }) => state)).toEqual(['ended', 'running']);
    expect(await client.getExec(SESSION, id)).toMatchObject({ background: true, result: null });
    const bytes = new Uint8Array(1_200_000).fill(7);
    await client.writeStdin(SESSION, id, bytes, { eof: true });
    await client.writeStdin(SESSION, id, '', { eof: true });
    const background = session.findExec(id);
    const written = background.calls.map(([name, typed]) => [
      name,
      typeof typed === 'string' ? typed.length : 0,
    ]);
    expect(written).toEqual([
      ['write', 524_288],
      ['write', 524_288],
      ['write', 151_424],
      ['closeStdin', 0],
      ['closeStdin', 0],
    ]);
    const waiting = client.waitExec(SESSION, id);
    expect(await client.readOutput(SESSION, id, { from: 3, limit: 5 })).toMatchObject({
      from: 3,
      result: null,
    });
    expect(await client.killExec(SESSION, id)).toEqual({ killed: true, exec_ids: [id] });
    expect(await waiting).toMatchObject({ exit_code: 137 });
    const events = [];
    for await (const event of client.followExec(SESSION, 'exec_1', { from: 4 })) events.push(event);
    expect(events.map((event) => ('text' in event ? [event.from, event.text] : event.type))).toEqual([
      'start',
      [4, '€\n'],
      [8, '\ufffd'],
      'exit',
    ]);
  });

  test('[RS-20] exec keeps the beginning and the end of long output, and says what is missing', async () => {
    server.sessions.session.onExec = (exec) => {
      for (let count = 0; count < 100; count += 1) exec.print('stdout', '€€€€€€€€€€');
      exec.cut(50);
      exec.print('stdout', '!');
      exec.end();
    };
    const small = new HttpRunnerClient({ baseUrl: `http://127.0.0.1:${server.port}`, outputKeptBytes: 100 });
    const { stdout, output_cut_bytes: cut } = await small.exec(SESSION, { command: 'x' });
    expect(stdout).toBe(`${'€'.repeat(16)}\n[… 2904 bytes cut …]\n${'€'.repeat(16)}!`);
    expect(cut).toBe(2904 + 50);
  });

  test('[RS-20] files and folders, text or not', async () => {
    const { session } = server.sessions;
    const file = { kind: 'file', path: 'a b/c', size: 2, mode: 0o644 } as const;
    session.read = () => Promise.resolve({ ...file, content: '/wA=', encoding: 'base64' });
    expect(await client.readFile(SESSION, 'a b/c')).toEqual({
      bytes: Uint8Array.of(255, 0),
      size: 2,
      mode: 0o644,
    });
    await expect(client.listFolder(SESSION, 'a')).rejects.toMatchObject({ code: 'FILE_REFUSED' });
    const entries = [{ name: 'x', kind: 'file', size: 1, mode: 0o600 }] as const;
    session.read = () => Promise.resolve({ kind: 'folder', path: '.', entries: [...entries] });
    expect(await client.listFolder(SESSION)).toEqual(entries);
    await expect(client.readFile(SESSION, 'a')).rejects.toMatchObject({ code: 'FILE_REFUSED' });
    expect(Buffer.from(bytesOfChunk({ stream: 'stdout', from: 0, data: '\ufffd', base64: '/w==' }))).toEqual(
      Buffer.from([255]),
    );
  });

  test('[RS-20] an archive that breaks off fails, and one that nobody reads is left', async () => {
    const { session } = server.sessions;
    expect(await text(await client.downloadArchive(SESSION))).toBe('a tar');
    session.chunks = async function* broken() {
      yield await Promise.resolve(Buffer.from('half'));
      throw new Error('the cell is gone');
    };
    const stream = await client.downloadArchive(SESSION);
    await expect(text(stream)).rejects.toMatchObject({ code: 'NETWORK' });
    let left = false;
    session.chunks = async function* endless() {
      try {
        for (;;) yield await Promise.resolve(Buffer.alloc(65_536));
      } finally {
        left = true;
      }
    };
    await (await client.downloadArchive(SESSION)).cancel();
    await expect.poll(() => left).toBe(true);
  });
});
