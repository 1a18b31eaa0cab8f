import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ErrorReply } from '../wire/execute.ts';
import { ScriptedServer } from './scripted-server.double.ts';

let server: ScriptedServer;
beforeAll(async () => {
  server = await ScriptedServer.start();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const post = (...headers: string[]) =>
  [
    'POST /execute/python HTTP/1.1',
    'Host: localhost',
    'Content-Type: application/json',
    ...headers,
    '',
    '',
  ].join('\r\n');

test.each<[string, number, string]>([
  ['no HTTP at all', 400, 'hello\r\n\r\n'],
  ['a TLS greeting', 400, '\u0016\u0003\u0001\u0002\u0000\u0001\r\n\r\n'],
  ['a version that is not there', 400, 'GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n'],
  ['a space before a colon', 400, 'GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n'],
  ['NUL in a header', 400, 'GET /health HTTP/1.1\r\nHost: local\0host\r\n\r\n'],
  ['two lengths', 400, `${post('Content-Length: 11', 'Content-Length: 12')}{"code":""}`],
  ['a length and chunks', 400, `${post('Content-Length: 11', 'Transfer-Encoding: chunked')}0\r\n\r\n`],
  ['a negative length', 400, `${post('Content-Length: -1')}{"code":""}`],
  ['a chunk size that is no number', 400, `${post('Transfer-Encoding: chunked')}zz\r\n`],
  ['endless headers', 431, `GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`],
])('%s gets %d in the form of every error', async (_name, status, bytes) => {
  const reply = await server.sendBytes(bytes);
  expect(reply).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(ErrorReply.safeParse(bodyOf(reply)).error).toBeUndefined();
  expect(server.runRequests).toEqual([]);
});

test.each<[string, number]>([
  ['/%', 404],
  ['/%ff', 404],
  ['/%E0%A4%A', 404],
  ['/execute/%', 404],
  ['/execute/%FF', 404],
  ['/execute/%00', 404],
  ['/execute/..%2fpython', 404],
  [`/execute/${'x'.repeat(101)}`, 404],
  ['/execute/', 404],
  ['/execute', 404],
  ['//health', 404],
  ['/health?x=%', 405],
  ['*', 404],
])('a POST to %s gets %d in the form of every error', async (path, status) => {
  const reply = await server.sendBytes(
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`,
  );
  expect(reply).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(ErrorReply.safeParse(bodyOf(reply)).error).toBeUndefined();
  expect(reply).toMatch(/x-content-type-options: nosniff/);
});

test('a request without a Host is refused', async () => {
  expect(await server.sendBytes('GET /health HTTP/1.1\r\nConnection: close\r\n\r\n')).toMatch(
    /^HTTP\/1.1 400 /,
  );
  expect(await server.sendBytes('GET /health HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n')).toMatch(
    /^HTTP\/1.1 403 .*HOST_REFUSED/s,
  );
  expect(await server.sendBytes('GET /health HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1.1 403 .*HOST_REFUSED/s);
});

test('[CX-07] a body that is announced too large is refused before it comes', async () => {
  const reply = await server.sendBytes(post('Content-Length: 99999999'));
  expect(reply).toMatch(/^HTTP\/1.1 413 .*BODY_TOO_LARGE/s);
});

test('[CX-07] a client that first sends far too much and then reads still gets to see the 413', async () => {
  const size = 16 * 1024 * 1024;
  const bytes = Buffer.concat([Buffer.from(post(`Content-Length: ${size}`)), Buffer.alloc(size, 'x')]);
  for (let round = 0; round < 3; round += 1) {
    expect(await server.sendBytes(bytes)).toMatch(/^HTTP\/1.1 413 .*BODY_TOO_LARGE/s);
  }
});

test('a client that breaks off within its body harms nobody', async () => {
  await new Promise<void>((resolve) => {
    const socket = connect(server.port, '127.0.0.1', () => {
      socket.write(`${post('Content-Length: 11')}{"co`, () => socket.resetAndDestroy());
    });
    socket.on('close', () => resolve());
  });
  expect((await server.ask('/health')).status).toBe(200);
  expect(server.runRequests).toEqual([]);
  expect(server.logLines.filter((line) => line.level === 'error')).toEqual([]);
});

test('two requests in one packet get two answers', async () => {
  const one = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const last = 'GET /languages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  expect((await server.sendBytes(one + last)).match(/HTTP\/1.1 200 OK/g)).toHaveLength(2);
});

function bodyOf(reply: string): unknown {
  return JSON.parse(reply.slice(reply.indexOf('\r\n\r\n') + 4));
}
