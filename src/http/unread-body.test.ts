import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ErrorReply } from '../wire/execute.ts';
import { ScriptedServer } from './scripted-server.double.ts';
import { SESSION } from './sessions/scripted-sessions.double.ts';

const KB = 1024;
const MB = 1024 * KB;
/** What the server may take of a body beyond the limit of its route. */
const BEYOND = 1.25 * MB;
const CHUNK = `10000\r\n${'x'.repeat(0x10000)}\r\n`;

let server: ScriptedServer;
/** The server's ends of the connections, by the ports of the clients. */
const accepted = new Map<number | undefined, Socket>();
beforeAll(async () => {
  server = await ScriptedServer.start({
    mcp: { answer: ({ response }) => Promise.resolve(void response.end('{}')) },
  });
  server.app.server.on('connection', (socket: Socket) => accepted.set(socket.remotePort, socket));
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

interface Flood {
  readonly reply: string;
  /** Bytes of the connection that the server had taken when its answer was seen, and when it was closed. */
  readonly untilAnswer: number;
  readonly untilClose: number;
}

/** Sends a request with a body that ends only with the connection. */
async function flood(request: string, { headers = [] as string[], body = CHUNK } = {}): Promise<Flood> {
  const socket = connect(server.port, '127.0.0.1');
  await once(socket, 'connect');
  const taken = await vi.waitFor(() => {
    const end = accepted.get(socket.localPort);
    if (end === undefined) throw new RangeError('not accepted yet');
    return end;
  });
  const lines = [
    `${request} HTTP/1.1`,
    'Host: localhost',
    'Content-Type: application/json',
    ...headers,
    '',
    '',
  ];
  const write = () => {
    while (!socket.destroyed && socket.write(body));
  };
  let reply = '';
  let untilAnswer = 0;
  socket.on('drain', write);
  const closed = new Promise<void>((resolve) => {
    // Only the server ends a flood, and that may be an error of the next write.
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
  });
  socket.on('data', (bytes) => {
    if (reply === '') untilAnswer = taken.bytesRead;
    reply += bytes.toString();
  });
  socket.write(lines.join('\r\n'));
  write();
  await closed;
  return { reply, untilAnswer, untilClose: taken.bytesRead };
}

test.concurrent.each<[string, number, number]>([
  ['POST /execute/python', 413, 100 * KB],
  ['POST /v1/sessions', 413, 100 * KB],
  [`POST /v1/sessions/${SESSION}/exec`, 413, MB],
  [`POST /v1/sessions/${SESSION}/upload`, 413, MB],
  [`POST /v1/sessions/${SESSION}/sync`, 413, MB],
  [`POST /v1/sessions/${SESSION}/apply_patch`, 413, MB],
  [`DELETE /v1/sessions/${SESSION}`, 413, 100 * KB],
  ['POST /mcp', 413, MB],
  ['POST /v1/sessions/unknown/upload', 404, 0],
  ['POST /nowhere', 404, 0],
  ['POST /%', 404, 0],
  ['PUT /execute/python', 405, 0],
])('[CX-07] %s answers %d to a body without end, and closes', async (request, status, limit) => {
  const { reply, ...taken } = await flood(request, { headers: ['Transfer-Encoding: chunked'] });
  expect(reply).toMatch(new RegExp(`^HTTP/1.1 ${status} .*\\r\\nconnection: close\\r\\n`, 'is'));
  expect(ErrorReply.safeParse(JSON.parse(reply.slice(reply.indexOf('\r\n\r\n')))).error).toBeUndefined();
  expect(taken.untilAnswer).toBeLessThan(limit + BEYOND);
  expect(taken.untilClose).toBeLessThan(limit + BEYOND);
});

test.concurrent.each([
  'GET /health',
  'GET /mcp',
  `GET /v1/sessions/${SESSION}`,
  `GET /v1/sessions/${SESSION}/archive`,
])('[CX-07] %s asks for no body, and does not read one without end', async (request) => {
  const { reply, ...taken } = await flood(request, { headers: ['Transfer-Encoding: chunked'] });
  expect(reply).toMatch(/^HTTP\/1.1 200 .*\r\nconnection: close\r\n/is);
  expect(taken.untilClose).toBeLessThan(BEYOND);
});

test.concurrent('[CX-07] of a body that is announced as endless little is taken', async () => {
  const headers = [`Content-Length: ${Number.MAX_SAFE_INTEGER}`];
  const { reply, ...taken } = await flood('POST /execute/python', { headers, body: 'x'.repeat(64 * KB) });
  expect(reply).toMatch(/^HTTP\/1.1 413 .*BODY_TOO_LARGE/s);
  expect(taken.untilAnswer).toBeLessThan(BEYOND);
  expect(taken.untilClose).toBeLessThan(17 * MB);
});

test.concurrent('a little body that nobody wants costs no connection', async () => {
  const refused = `POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}`;
  const last = 'GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  expect((await server.sendBytes(refused + last)).match(/HTTP\/1.1 \d+/g)).toEqual([
    'HTTP/1.1 404',
    'HTTP/1.1 200',
  ]);
});
