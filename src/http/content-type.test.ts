import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ScriptedServer, type Answer } from './scripted-server.double.ts';

let server: ScriptedServer;
beforeAll(async () => {
  server = await ScriptedServer.start();
});
beforeEach(() => {
  server.runRequests.length = 0;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

test.each([
  ['text/plain', { 'content-type': 'text/plain' }],
  ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
  ['a multipart form', { 'content-type': 'multipart/form-data; boundary=x' }],
  ['a type that only begins like JSON', { 'content-type': 'application/jsonp' }],
  ['text/plain that mentions JSON', { 'content-type': 'text/plain; application/json' }],
  ['a broken type', { 'content-type': ';;;' }],
  ['an empty type', { 'content-type': '' }],
  ['a compressed body', { 'content-type': 'application/json', 'content-encoding': 'gzip' }],
])('[CX-17] %s is refused with 415', async (_name, headers) => {
  const answer = await server.ask('/execute/python', { method: 'POST', headers, body: '{"code":""}' });
  expect(seen(answer)).toMatchObject({ status: 415, ran: 0, code: 'UNSUPPORTED_MEDIA_TYPE' });
});

test('[CX-17] a post without a content type is refused with 415, with a body and without', async () => {
  for (const body of ['{"code":""}', undefined]) {
    const answer = await server.ask('/execute/python', {
      method: 'POST',
      ...(body === undefined ? {} : { body }),
    });
    expect(seen(answer)).toMatchObject({ status: 415, ran: 0, code: 'UNSUPPORTED_MEDIA_TYPE' });
  }
});

test('the content type may have a charset and capitals', async () => {
  const headers = { 'content-type': 'Application/JSON ; charset=UTF-8' };
  expect((await server.executeRaw('{"code":""}', headers)).status).toBe(200);
});

/** What the client saw, and whether anything ran. */
function seen(answer: Answer): object {
  return { status: answer.status, ran: server.runRequests.length, ...Object(answer.json()) };
}
