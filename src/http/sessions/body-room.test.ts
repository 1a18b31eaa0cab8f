import { request as sendRequest, type ClientRequest } from 'node:http';
import { expect, test } from 'vitest';
import { ScriptedServer } from '../scripted-server.double.ts';
import { SESSION } from './scripted-sessions.double.ts';

const UPLOAD = `/v1/sessions/${SESSION}/upload`;
const LIMIT = 1024 * 1024;
const JSON_TYPE = { 'content-type': 'application/json' };

/** An upload whose body is announced and does not come. */
function announce(server: ScriptedServer, length: string): ClientRequest {
  const headers = length === '' ? { 'transfer-encoding': 'chunked' } : { 'content-length': length };
  const outgoing = sendRequest({
    host: '127.0.0.1',
    port: server.port,
    path: UPLOAD,
    method: 'POST',
    headers: { ...JSON_TYPE, ...headers },
    agent: false,
  });
  outgoing.on('error', () => undefined);
  outgoing.flushHeaders();
  return outgoing;
}

test.each(['', String(LIMIT)])(
  '[RS-08] large bodies have bounded room together; the room comes back (announced: %j)',
  async (length) => {
    await using server = await ScriptedServer.start();
    const upload = (bytes: number) => {
      const files = [{ path: 'a', content: 'x'.repeat(bytes) }];
      return server.ask(UPLOAD, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ files }) });
    };
    expect((await upload(LIMIT / 2)).status).toBe(200);
    const before = server.sessions.callers.length;
    const held = [1, 2, 3, 4].map(() => announce(server, length));
    await expect.poll(() => server.sessions.callers.length).toBe(before + 4);
    const refused = await upload(LIMIT / 2);
    expect([refused.status, refused.headers['retry-after'], refused.json()]).toMatchObject([
      429,
      '1',
      { code: 'TOO_BUSY' },
    ]);
    // What is small always has room, and what is too large hears that.
    expect((await upload(1000)).status).toBe(200);
    expect((await upload(LIMIT)).status).toBe(413);
    held[0]?.destroy();
    await expect.poll(async () => (await upload(LIMIT / 2)).status).toBe(200);
    for (const one of held) one.destroy();
  },
);
