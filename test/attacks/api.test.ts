import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  POOL_SIZE,
  countMarked,
  expectServes,
  makeMarker,
  readMetrics,
  settle,
  startServer,
  stopClean,
  waitUntilGone,
} from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import type { TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => stopClean(server));

const CODE = JSON.stringify({ code: 'print(1)' });

/** With any header, also those that `fetch` would not send. */
async function post(
  headers: Record<string, string>,
  body = CODE,
): Promise<{ status: number; allow: string | undefined; text: string }> {
  const request = httpRequest(`${server.url}/execute/python`, { method: 'POST', headers });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    allow: response.headers['access-control-allow-origin'],
    text: Buffer.concat(chunks).toString(),
  };
}

async function openSocket(): Promise<Socket> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

const JSON_TYPE = { 'content-type': 'application/json' };

describe('pages of others', () => {
  test('[CX-17] the configured origin gets through', async () => {
    const reply = await post({ ...JSON_TYPE, origin: 'http://localhost:3000' });
    expect(reply).toMatchObject({ status: 200, allow: 'http://localhost:3000' });
  });

  test.each([
    'https://evil.example',
    'http://localhost:3001',
    'https://localhost:3000',
    'null',
    'http://localhost:3000.evil.example',
  ])('[CX-17] the origin %s does not', async (origin) => {
    const reply = await post({ ...JSON_TYPE, origin });
    expect(reply).toMatchObject({ status: 403, allow: undefined });
    expect(reply.text).toContain('ORIGIN_REFUSED');
  });

  test.each(['evil.example', 'evil.example:8000', 'localhost.evil.example', '127.0.0.1.nip.io'])(
    '[CX-17] a name that was bound to our address is refused: %s',
    async (host) => {
      expect(await post({ ...JSON_TYPE, host })).toMatchObject({ status: 403 });
    },
  );

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/plain; application/json',
    '',
  ])('[CX-17] a form cannot be the sender: %j', async (type) => {
    const reply = await post(type === '' ? {} : { 'content-type': type });
    expect(reply.status).toBe(415);
  });

  test('[CX-17] refused requests run nothing', async () => {
    const marker = makeMarker();
    const body = JSON.stringify({ code: `import os\nos.execvp('sleep', ['sleep', '${marker}'])` });
    const headers = [
      { 'content-type': 'text/plain' },
      { ...JSON_TYPE, origin: 'https://evil.example' },
      { ...JSON_TYPE, host: 'evil.example' },
    ];
    for (const each of headers) expect((await post(each, body)).status).toBeGreaterThanOrEqual(400);
    expect(countMarked(marker)).toBe(0);
    expect((await readMetrics(server, 'hotcell_runs_running')).get('')).toBe(0);
  });
});

describe('bodies', () => {
  test('[CX-07] one byte too many is 413', async () => {
    const limit = 100 * 1024;
    const frame = JSON.stringify({ code: '' }).length;
    const fits = await server.execute('python', { code: '#'.repeat(limit - frame) });
    expect(fits.status).toBe(200);
    const tooLarge = await server.execute('python', { code: '#'.repeat(limit - frame + 1) });
    expect(tooLarge).toMatchObject({ status: 413, body: { code: 'BODY_TOO_LARGE' } });
  });

  test('[CX-07] a body that claims to be small and is not is refused', async () => {
    const socket = await openSocket();
    socket.write(
      'POST /execute/python HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
    );
    const chunk = `4000\r\n${' '.repeat(0x4000)}\r\n`;
    for (let sent = 0; sent < 20; sent++) socket.write(chunk);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 413/);
    socket.destroy();
  });

  test.each([
    ['{"code": 1}', 'code'],
    ['{}', 'code'],
    ['{"code": "", "timeout_ms": "1"}', 'timeout_ms'],
    ['{"code": "", "memory_mb": 1.5}', 'memory_mb'],
    ['{"code": "", "args": [1]}', 'args'],
    ['{"code": "", "env": {"A=B": ""}}', 'env'],
    ['{"code": "", "files": [{"path": "../x", "content": ""}]}', 'path'],
    ['{"code": "", "files": [{"path": "/etc/passwd", "content": ""}]}', 'path'],
    ['{"code": "", "memory_md": 5}', 'memory_md'],
    ['{"code": "\\u0000"}', 'code'],
  ])('[CX-07] %s is refused by the name of its field', async (body, field) => {
    const reply = await server.execute('python', body);
    expect(reply.status).toBe(422);
    expect(reply.body.detail).toContain(field);
  });

  test.each(['', '{', '[]', 'null', '"code"', '{"code": "x"', '{"__proto__": {"code": "1"}, "code": ""}'])(
    '[CX-07] %s is no request',
    async (body) => {
      expect(await server.execute('python', body)).toMatchObject({
        status: 400,
        body: { code: 'INVALID_JSON' },
      });
    },
  );
});

describe('clients that misbehave', () => {
  test('[CX-17, CX-08] 200 slow clients do not hold the others', async () => {
    const sockets = await Promise.all(Array.from({ length: 200 }, openSocket));
    for (const [index, socket] of sockets.entries()) {
      const head = 'POST /execute/python HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n';
      socket.write(index % 2 === 0 ? head : `${head}content-length: 1000\r\n\r\n{"code":`);
    }
    await expectServes(server);
    for (const socket of sockets) socket.destroy();
    await expectServes(server);
  });

  test('[CX-08] 200 aborted requests leave nothing running', async () => {
    const marker = makeMarker();
    const body = JSON.stringify({ code: `exec sleep ${marker}` });
    const text = `POST /execute/bash HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const sockets = await Promise.all(Array.from({ length: 200 }, openSocket));
    for (const socket of sockets) socket.write(text);
    await waitFor('some of them run', () => countMarked(marker) > 0);
    for (const socket of sockets) socket.destroy();
    await waitUntilGone(marker);
    await waitFor(
      'nobody waits any more',
      async () => (await readMetrics(server, 'hotcell_runs_running')).get('') === 0,
    );
    await expectServes(server);
  });

  test('[CX-08] clients that left do not blow the pool up', async () => {
    await settle(server);
    const ready = await readMetrics(server, 'hotcell_cells_ready');
    expect(Math.max(...ready.values())).toBeLessThanOrEqual(POOL_SIZE);
  });

  test.each(['python', 'bash', 'javascript'])(
    '[CX-05, CX-08] a program whose client left is killed with its children: %s',
    async (language) => {
      const marker = makeMarker();
      const codes: Record<string, string> = {
        python: `import subprocess\nsubprocess.Popen(['setsid', 'sleep', '${marker}'])\nwhile True: pass`,
        bash: `setsid sleep ${marker} & while :; do :; done`,
        javascript: `require('child_process').spawn('sleep', ['${marker}'], { detached: true }); for (;;);`,
      };
      const controller = new AbortController();
      const pending = fetch(`${server.url}/execute/${language}`, {
        method: 'POST',
        headers: JSON_TYPE,
        body: JSON.stringify({ code: codes[language], timeout_ms: 60_000 }),
        signal: controller.signal,
      });
      await waitFor('the program runs', () => countMarked(marker) > 0);
      controller.abort();
      await expect(pending).rejects.toThrow(/abort/i);
      await waitUntilGone(marker);
      await expectServes(server);
    },
  );
});
