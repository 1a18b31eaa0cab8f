import { expect, test } from 'vitest';
import { ScriptedServer } from './scripted-server.double.ts';

const RUN = '{"code":""}';

test('with a key set, everything that runs or tells needs it', async () => {
  await using locked = await ScriptedServer.start({ apiKey: 'kéy-12345' });
  for (const authorization of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer wrong',
    'Bearer kéy-1234',
    'Bearer kéy-123456',
    'Basic kéy-12345',
    'kéy-12345',
  ]) {
    const headers = authorization === undefined ? {} : { authorization: latin1OfUtf8(authorization) };
    for (const answer of [
      await locked.executeRaw(RUN, headers),
      await locked.ask('/languages', { headers }),
      await locked.ask('/metrics', { headers }),
      await locked.ask('/metrics.json', { headers }),
      await locked.ask('/v1/sessions', { headers }),
      await locked.ask('/v1/sessions/session_1/exec', { method: 'POST', headers }),
      await locked.ask('/nowhere', { headers }),
    ]) {
      expect([answer.status, answer.headers['www-authenticate'], answer.json()]).toEqual([
        401,
        'Bearer',
        expect.objectContaining({ code: 'UNAUTHORIZED' }),
      ]);
    }
  }
  expect(locked.runRequests).toEqual([]);
});

test('the right key opens, in any spelling of the scheme', async () => {
  await using locked = await ScriptedServer.start({ apiKey: 'kéy-12345' });
  for (const scheme of ['Bearer', 'bearer', 'BEARER ']) {
    const authorization = latin1OfUtf8(`${scheme} kéy-12345`);
    expect((await locked.executeRaw(RUN, { authorization })).status).toBe(200);
    expect((await locked.ask('/metrics', { headers: { authorization } })).status).toBe(200);
  }
});

test('health, documentation and preflights need no key, but only for reading', async () => {
  await using locked = await ScriptedServer.start({ apiKey: 'key-12345' });
  const statuses = ['/health', '/livez', '/readyz', '/docs', '/openapi.json', '/'].map(
    async (path) => (await locked.ask(path)).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 200, 200, 200, 200, 302]);
  expect((await locked.ask('/health', { method: 'HEAD' })).status).toBe(200);
  expect((await locked.ask('/health', { method: 'POST' })).status).toBe(401);
  const headers = { origin: 'http://localhost:3000', 'access-control-request-method': 'POST' };
  expect((await locked.ask('/execute/python', { method: 'OPTIONS', headers })).status).toBe(204);
});

/** Headers travel as bytes; node:http writes each character as one, clients in the wild send UTF-8. */
function latin1OfUtf8(text: string): string {
  return Buffer.from(text).toString('latin1');
}
