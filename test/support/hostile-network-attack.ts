import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type NetConnectOpts } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Plan } from './hostile-look-attack.ts';

/** The same for every worker. */
const COMMON_PORT = 18_080;
const OWN_PORT = 18_100;
const PATIENCE_MS = 1500;
const ADDRESSES = [
  '127.0.0.1',
  '::1',
  '0.0.0.0',
  '10.0.2.2',
  '172.17.0.1',
  '192.168.0.1',
  '192.168.65.2',
  '169.254.1.1',
];
const FAR: readonly (readonly [string, number])[] = [
  ['169.254.169.254', 80], ['fd00:ec2::254', 80], ['100.100.100.200', 80], ['1.1.1.1', 443], ['8.8.8.8', 53],
  ['2606:4700:4700::1111', 443], ['metadata.google.internal', 80], ['example.org', 443], ['registry.example.com', 443],
  ['host.docker.internal', 80],
]; // prettier-ignore

export interface Reached {
  readonly reached: readonly string[];
  /** What the gate said to each host, by its status. */
  readonly asked: Readonly<Record<string, string>>;
  readonly bound: readonly number[];
  readonly install: { readonly status: number | null; readonly words: string };
  readonly interfaces: string;
}

/** Tries every way out; the common port is held until the test says so, to be held by two workers at once. */
export async function reachOut({ ports, sockets, hosts }: Plan): Promise<Reached> {
  const worker = Number(process.env['MAHABHARATHA_WORKER_ID'] ?? '0');
  const servers = [COMMON_PORT, OWN_PORT + worker].map((port) =>
    createServer((socket) => socket.end(`own ${worker}`)).listen(port, '0.0.0.0'),
  );
  await Promise.all(servers.map((server) => once(server, 'listening')));
  writeFileSync('.state/bound', '');
  while (!existsSync('.state/go')) await sleep(20);
  const others = [0, 1, 2, 3].filter((other) => other !== worker).map((other) => OWN_PORT + other);
  const ways: NetConnectOpts[] = [
    ...ADDRESSES.flatMap((host) => ports.map((port) => ({ host, port }))),
    ...others.map((port) => ({ host: '127.0.0.1', port })),
    ...FAR.map(([host, port]) => ({ host, port })),
    ...['/var/run/docker.sock', '/run/docker.sock', '/run/podman/podman.sock', ...sockets].map((path) => ({
      path,
    })),
  ];
  const tried = await Promise.all(ways.map(tryConnect));
  const names = await Promise.all(['8.8.8.8', '127.0.0.53', '1.1.1.1'].map(askName));
  const reached = [...tried, ...names].filter((way) => way !== undefined);
  const asked: Record<string, string> = {};
  for (const host of hosts) asked[host] = await askGate(host);
  return {
    reached,
    asked,
    bound: servers.map((server) => (server.address() as { port: number }).port),
    install: install(),
    interfaces: readFileSync('/proc/net/dev', 'utf8'),
  };
}

async function tryConnect(way: NetConnectOpts): Promise<string | undefined> {
  const socket = connect(way);
  const name = JSON.stringify(way);
  const result = await Promise.race([
    once(socket, 'connect').then(
      () => name,
      () => undefined,
    ),
    sleep(PATIENCE_MS).then(() => undefined),
  ]);
  socket.destroy();
  return result;
}

/** An answer to a question for a name, by whoever gives one. */
async function askName(server: string): Promise<string | undefined> {
  const socket = createSocket('udp4');
  const question = Buffer.from('123401000001000000000000076578616d706c65036f72670000010001', 'hex');
  const answer = once(socket, 'message').then(
    () => `name server ${server}`,
    () => undefined,
  );
  socket.send(question, 53, server, () => {});
  const result = await Promise.race([answer, sleep(PATIENCE_MS).then(() => undefined)]);
  socket.close();
  return result;
}

/** The first line of the answer to a request for a tunnel. */
export async function askGate(authority: string): Promise<string> {
  const proxy = new URL(process.env['https_proxy'] ?? process.env['HTTPS_PROXY'] ?? 'http://127.0.0.1:1');
  const socket = connect({ host: proxy.hostname, port: Number(proxy.port) });
  try {
    await once(socket, 'connect');
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    return bytes.toString('latin1').split('\r\n')[0] ?? '';
  } catch (error) {
    return String(error);
  } finally {
    socket.destroy();
  }
}

function install(): Reached['install'] {
  const args = [
    'install',
    '--prefix',
    '/tmp/installed',
    '--no-update-notifier',
    '--no-audit',
    '--no-fund',
    'ms',
  ];
  const { status, stdout, stderr } = spawnSync('npm', args, { encoding: 'utf8', timeout: 60_000 });
  return { status, words: `${stdout}${stderr}`.slice(-2000) };
}
