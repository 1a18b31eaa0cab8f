import { afterEach, beforeEach, expect, test } from 'vitest';
import { ERRORS, HotcellError, type ErrorCode } from '../../core/errors.ts';
import { ScriptedServer } from '../scripted-server.double.ts';
import type { ScriptedExec } from './scripted-exec.double.ts';
import { SESSION } from './scripted-sessions.double.ts';
import { TerminalClient } from './terminal-client.double.ts';

const HERE = `/v1/sessions/${SESSION}/terminal`;
const UPGRADE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};
const MiB = 1024 * 1024;

let server: ScriptedServer;
const open: Disposable[] = [];
beforeEach(async () => {
  server = await ScriptedServer.start({ heartbeatMs: 40 });
});
afterEach(async () => {
  for (const one of open.splice(0)) one[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

function view(query = '', opening = {}): TerminalClient {
  const client = new TerminalClient(`ws://127.0.0.1:${server.port}${HERE}${query}`, opening);
  open.push(client);
  return client;
}

async function openTerminal(query = ''): Promise<{ client: TerminalClient; exec: ScriptedExec }> {
  const client = view(query);
  await expect.poll(() => client.control.length).toBeGreaterThan(0);
  return { client, exec: server.sessions.session.findExec(String(client.control[0]?.exec_id)) };
}

test('[TM-01] a terminal is opened, sized, typed into, seen, and its end is told', async () => {
  const { client, exec } = await openTerminal('?rows=40&cols=120');
  expect(client.control).toEqual([{ type: 'ready', exec_id: 'exec_1', from: 0 }]);
  expect(server.sessions.session.calls).toEqual([
    ['openTerminal', { size: { rows: 40, columns: 120 }, env: {} }],
  ]);
  client.type('ls\r');
  client.say({ type: 'resize', rows: 10, cols: 20 });
  client.say({ type: 'eof' });
  const allBytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  exec.print('stdout', allBytes);
  exec.cut(10);
  await expect.poll(() => [client.output.length, client.control.length]).toEqual([256, 2]);
  expect(Buffer.from(client.output, 'latin1')).toEqual(allBytes);
  expect(client.control[1]).toEqual({ type: 'cut', from: 256, to: 266 });
  await expect.poll(() => exec.calls.length).toBe(4);
  expect(exec.calls).toEqual([
    ['follow', 0],
    ['write', 'ls\r'],
    ['resize', { rows: 10, columns: 20 }],
    ['closeStdin'],
  ]);
  client.say({ type: 'kill' });
  expect((await client.closed).code).toBe(1000);
  expect(client.control.at(-1)).toMatchObject({ type: 'exit', result: { exit_code: 137 } });
});

test('[TM-01] a command instead of a shell, and the usual size', async () => {
  await openTerminal('?command=top%20-b');
  expect(server.sessions.session.calls).toEqual([
    ['openTerminal', { size: { rows: 24, columns: 80 }, env: {}, command: 'top -b' }],
  ]);
});

test('[TM-01] two viewers see the same and both can type; one that leaves takes nothing with it', async () => {
  const { client: first, exec } = await openTerminal();
  exec.print('stdout', 'before ');
  const second = view('?exec_id=exec_1&rows=5&cols=6');
  await expect.poll(() => second.output).toBe('before ');
  exec.print('stdout', 'both');
  await expect.poll(() => [first.output, second.output]).toEqual(['before both', 'before both']);
  first.type('1');
  await expect.poll(() => exec.calls.at(-1)).toEqual(['write', '1']);
  second.type('2');
  await expect.poll(() => exec.calls.at(-1)).toEqual(['write', '2']);
  expect(exec.calls).toContainEqual(['resize', { rows: 5, columns: 6 }]);
  first.socket.close();
  await first.closed;
  await expect.poll(() => exec.followers).toBe(1);
  exec.print('stdout', ' on');
  await expect.poll(() => second.output).toBe('before both on');
  expect(server.sessions.session.commands.size).toBe(1);
});

test('[TM-01] after a lost connection one attaches again, from any place, also after the end', async () => {
  const { client, exec } = await openTerminal();
  exec.print('stdout', 'one two three');
  await expect.poll(() => client.output).toBe('one two three');
  client.socket.close();
  await client.closed;
  await expect.poll(() => exec.followers).toBe(0);
  expect(exec.describe().state).toBe('running');
  const later = view('?exec_id=exec_1&from=4');
  await expect.poll(() => later.output).toBe('two three');
  expect(later.control[0]).toEqual({ type: 'ready', exec_id: 'exec_1', from: 4 });
  exec.end();
  expect((await later.closed).code).toBe(1000);
  const last = view('?exec_id=exec_1&rows=9&cols=9');
  expect((await last.closed).code).toBe(1000);
  expect([last.output, last.control.at(-1)?.type]).toEqual(['one two three', 'exit']);
  expect(exec.calls.filter(([name]) => name === 'resize')).toEqual([]);
});

test('[TM-01] the scroll-back has a bound', async () => {
  const exec = server.sessions.session.addExec({ terminal: true });
  exec.print('stdout', Buffer.alloc(3 * MiB, 'a'));
  const client = view('?exec_id=exec_1');
  await expect.poll(() => client.output.length).toBe(MiB);
  expect(client.control[0]).toEqual({ type: 'ready', exec_id: 'exec_1', from: 2 * MiB });
});

test.each([
  ['no JSON', 'resize'],
  ['JSON that is no object', '5'],
  ['an unknown type', '{"type":"reboot"}'],
  ['no type', '{}'],
  ['a missing size', '{"type":"resize","rows":1}'],
  ['a size of nothing', '{"type":"resize","rows":0,"cols":0}'],
  ['a size without end', '{"type":"resize","rows":1,"cols":100000}'],
  ['a field too much', '{"type":"eof","now":true}'],
  ['__proto__', '{"type":"eof","__proto__":{}}'],
])('[TM-01] %s in a text message closes with 1008 and a reason, and does nothing', async (_name, text) => {
  const { client, exec } = await openTerminal();
  client.say(text);
  const { code, reason } = await client.closed;
  expect([code, reason === '']).toEqual([1008, false]);
  expect(exec.calls).toEqual([['follow', 0]]);
  expect(exec.describe().state).toBe('running');
});

test('[TM-01] a message that is too large closes with 1009', async () => {
  const { client, exec } = await openTerminal();
  client.socket.send(Buffer.alloc(256 * 1024 + 1));
  expect((await client.closed).code).toBe(1009);
  expect(exec.calls).toEqual([['follow', 0]]);
});

test('[TM-01] keys that come too late do no harm', async () => {
  const { client, exec } = await openTerminal();
  exec.failing = { write: new HotcellError('EXEC_ENDED', 'it has ended') };
  client.type('x');
  exec.print('stdout', 'still here');
  await expect.poll(() => client.output).toBe('still here');
});

test('[TM-01] output that fails closes with 1011 and says so', async () => {
  const exec = server.sessions.session.addExec({ terminal: true });
  exec.failing = { follow: new TypeError('secret') };
  const client = view('?exec_id=exec_1');
  expect(await client.closed).toMatchObject({ code: 1011 });
  expect(JSON.stringify([client.control, await client.closed])).not.toContain('secret');
  expect(client.control.at(-1)).toMatchObject({ type: 'interrupted', code: 'INTERNAL' });
});

test.each<[string, string, Record<string, string>, ErrorCode]>([
  ['an unknown session', HERE.replace(SESSION, 'session_2'), {}, 'SESSION_UNKNOWN'],
  ['an ended session', HERE.replace(SESSION, 'session_old'), {}, 'SESSION_ENDED'],
  ['an unknown command', `${HERE}?exec_id=exec_9`, {}, 'EXEC_UNKNOWN'],
  ['a command without a terminal', `${HERE}?exec_id=exec_1`, {}, 'INVALID_REQUEST'],
  ['a command for one that is there', `${HERE}?exec_id=exec_2&command=x`, {}, 'INVALID_REQUEST'],
  ['no rows', `${HERE}?rows=0`, {}, 'INVALID_REQUEST'],
  ['many columns', `${HERE}?cols=1001`, {}, 'INVALID_REQUEST'],
  ['an unknown parameter', `${HERE}?size=1`, {}, 'INVALID_REQUEST'],
  ['NUL in the command', `${HERE}?command=%00`, {}, 'INVALID_REQUEST'],
  ['a foreign origin', HERE, { origin: 'https://evil.example' }, 'ORIGIN_REFUSED'],
  ['a foreign host', HERE, { host: 'evil.example' }, 'HOST_REFUSED'],
  ['another version', HERE, { 'sec-websocket-version': '7' }, 'BAD_REQUEST'],
  ['a bad key of the handshake', HERE, { 'sec-websocket-key': 'x' }, 'BAD_REQUEST'],
  ['no upgrade', HERE, { upgrade: '', connection: 'close' }, 'BAD_REQUEST'],
  ['an upgrade to something else', HERE, { upgrade: 'h2c' }, 'BAD_REQUEST'],
])('[TM-01] %s is refused before the upgrade', async (_name, path, headers, code) => {
  server.sessions.session.addExec();
  server.sessions.session.addExec({ terminal: true });
  const answer = await server.ask(path, { headers: { ...UPGRADE, ...headers } });
  expect([answer.status, answer.json()]).toMatchObject([
    ERRORS[code].status,
    { code, hint: expect.any(String) },
  ]);
  expect(server.sessions.session.calls).toEqual([]);
  expect(server.sessions.session.commands.size).toBe(2);
});

test('[TM-01] a shell that cannot be opened is an HTTP answer', async () => {
  server.sessions.session.failing = { openTerminal: new HotcellError('SESSION_PAUSED', 'it is paused') };
  const answer = await server.ask(HERE, { headers: UPGRADE });
  expect([answer.status, answer.json()]).toMatchObject([409, { code: 'SESSION_PAUSED' }]);
});

test('[TM-01] a key comes in a header or, from browsers, as a subprotocol', async () => {
  await using locked = await ScriptedServer.start({ apiKey: 'kéy-12345' });
  const url = `ws://127.0.0.1:${locked.port}${HERE}`;
  const bearer = (key: string) => `hotcell.bearer.${Buffer.from(key).toString('base64url')}`;
  for (const [protocols, chosen] of [
    [['hotcell.terminal', bearer('kéy-12345')], 'hotcell.terminal'],
    [[bearer('kéy-12345')], bearer('kéy-12345')],
  ] as const) {
    using client = new TerminalClient(url, { protocols: [...protocols] });
    await client.opened;
    expect(client.socket.protocol).toBe(chosen);
  }
  const authorization = Buffer.from('Bearer kéy-12345').toString('latin1');
  using byHeader = new TerminalClient(url, { headers: { authorization } });
  await byHeader.opened;
  for (const protocol of ['hotcell.terminal', bearer('wrong'), 'hotcell.bearer.', bearer('')]) {
    const headers = { ...UPGRADE, 'sec-websocket-protocol': protocol };
    expect((await locked.ask(HERE, { headers })).status).toBe(401);
  }
  expect(locked.sessions.session.commands.size).toBe(3);
});

test('an upgrade to anything on any other route is a request as if it had not been asked for', async () => {
  for (const upgrade of ['websocket', 'h2c']) {
    const headers = { ...UPGRADE, upgrade, 'content-type': 'application/json' };
    expect((await server.ask('/health', { headers })).status).toBe(200);
    const run = await server.ask('/execute/python', { method: 'POST', headers, body: '{"code":"1"}' });
    expect(run.status).toBe(200);
  }
});
