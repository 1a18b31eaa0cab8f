import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { OutputEvent } from '../../sessions/api.ts';
import { ScriptedServer } from '../scripted-server.double.ts';
import { untilStill, type ScriptedExec } from './scripted-exec.double.ts';
import { SESSION } from './scripted-sessions.double.ts';
import { TerminalClient } from './terminal-client.double.ts';

const HERE = `/v1/sessions/${SESSION}/terminal`;
const MiB = 1024 * 1024;

const open: Disposable[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one[Symbol.dispose]();
});

function view(server: ScriptedServer): TerminalClient {
  const client = new TerminalClient(`ws://127.0.0.1:${server.port}${HERE}`);
  open.push(client);
  return client;
}

async function openTerminal(server: ScriptedServer): Promise<{ client: TerminalClient; exec: ScriptedExec }> {
  const client = view(server);
  await expect.poll(() => client.control.length).toBeGreaterThan(0);
  return { client, exec: server.sessions.session.findExec(String(client.control[0]?.exec_id)) };
}

const HANDSHAKE = {
  host: 'localhost',
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

/** A viewer on a bare socket: it answers no ping and reads only when told to. */
function connectBare(server: ScriptedServer, path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, '127.0.0.1');
    open.push({ [Symbol.dispose]: () => void socket.destroy() });
    const lines = Object.entries(HANDSHAKE).map(([name, value]) => `${name}: ${value}`);
    socket.write([`GET ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n'));
    socket.once('error', reject);
    socket.once('data', (chunk: Buffer) => {
      expect(chunk.toString('latin1')).toMatch(/^HTTP\/1.1 101 /);
      socket.pause();
      socket.off('error', reject);
      socket.on('error', () => undefined);
      resolve(socket);
    });
  });
}

test('[TM-01] a viewer that is dead is let go, one that lives is kept, and the terminal goes on', async () => {
  await using server = await ScriptedServer.start({ heartbeatMs: 40 });
  const { client, exec } = await openTerminal(server);
  const dead = await connectBare(server, `${HERE}?exec_id=exec_1`);
  await expect.poll(() => exec.followers).toBe(2);
  const closed = new Promise<void>((resolve) => dead.once('close', () => resolve()));
  dead.resume();
  await closed;
  await expect.poll(() => exec.followers).toBe(1);
  await sleep(200);
  exec.print('stdout', 'alive');
  await expect.poll(() => client.output).toBe('alive');
});

function flood(exec: ScriptedExec): { produced: number } {
  const count = { produced: 0 };
  const bytes = Buffer.alloc(64 * 1024, 'x');
  exec.follow = async function* follow(_from, signal): AsyncGenerator<OutputEvent> {
    while (!signal.aborted) {
      count.produced += bytes.length;
      yield await Promise.resolve({ type: 'stdout' as const, from: 0, bytes });
    }
  };
  return count;
}

test('[TM-01] [RS-06] a viewer that does not read costs no memory', async () => {
  await using server = await ScriptedServer.start();
  const exec = server.sessions.session.addExec({ terminal: true });
  const count = flood(exec);
  await connectBare(server, `${HERE}?exec_id=exec_1`);
  await untilStill(() => count.produced);
  await sleep(200);
  expect(count.produced).toBeLessThan(24 * MiB);
});

test('[TM-01] a client that sends pings and reads no answers is cut off', async () => {
  await using server = await ScriptedServer.start();
  server.sessions.session.addExec({ terminal: true });
  const socket = await connectBare(server, `${HERE}?exec_id=exec_1`);
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve('closed')));
  // Masked with zeros, 125 bytes each.
  const ping = Buffer.concat([Buffer.from([0x89, 0x80 | 125, 0, 0, 0, 0]), Buffer.alloc(125)]);
  const many = Buffer.concat(Array.from({ length: 10_000 }, () => ping));
  let sent = 0;
  while (!socket.destroyed && sent < 256 * MiB) {
    const written = new Promise<void>((resolve) => socket.write(many, () => resolve()));
    await Promise.race([written, closed]);
    sent += many.length;
  }
  await expect(Promise.race([closed, sleep(5000, 'late')])).resolves.toBe('closed');
  expect(sent).toBeLessThan(256 * MiB);
});

test('[TM-01] a server that stops tells its viewers to come again, and waits for no dead ones', async () => {
  await using server = await ScriptedServer.start({ heartbeatMs: 40 });
  const { client, exec } = await openTerminal(server);
  await connectBare(server, `${HERE}?exec_id=exec_1`);
  const stopped = server.app.close();
  expect((await client.closed).code).toBe(1012);
  expect(client.control.at(-1)).toMatchObject({ type: 'interrupted', code: 'SHUTTING_DOWN' });
  await expect(Promise.race([stopped, sleep(4000, 'late')])).resolves.not.toBe('late');
  expect(exec.describe().state).toBe('running');
});

test('[TM-01] a terminal that is being opened while the server stops is told so too', async () => {
  await using server = await ScriptedServer.start();
  const opening = Promise.withResolvers<void>();
  server.sessions.session.beforeTerminal = () => opening.promise;
  const client = view(server);
  await expect.poll(() => server.sessions.session.calls.length).toBe(1);
  const stopped = server.app.close();
  await sleep(20);
  opening.resolve();
  expect((await client.closed).code).toBe(1012);
  await expect(Promise.race([stopped, sleep(4000, 'late')])).resolves.not.toBe('late');
});

test('[TM-01] [RS-22] a terminal that the server lets go of is interrupted, not ended', async () => {
  await using server = await ScriptedServer.start();
  const { client, exec } = await openTerminal(server);
  await expect.poll(() => exec.followers).toBe(1);
  exec.letGo();
  expect((await client.closed).code).toBe(1012);
  expect(client.control.map(({ type }) => type)).toEqual(['ready', 'interrupted']);
});
