import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { ScriptedServer } from '../http/scripted-server.double.ts';
import { SESSION } from '../http/sessions/scripted-sessions.double.ts';
import { HttpRunnerClient } from './http-runner-client.ts';
import { RunnerError } from './runner-error.ts';

const QUICK = { firstDelayMs: 1, longestDelayMs: 4 };

let server: ScriptedServer;
let client: HttpRunnerClient;
beforeEach(async () => {
  server = await ScriptedServer.start();
  client = new HttpRunnerClient({ baseUrl: `http://127.0.0.1:${server.port}/`, retries: QUICK });
});
afterEach(() => server[Symbol.asyncDispose]());

/** A server that answers as told, one answer after the other, the last one for ever. */
async function answering(
  ...answers: ((request: IncomingMessage, response: ServerResponse) => void)[]
): Promise<{ url: string; paths: string[] } & AsyncDisposable> {
  const paths: string[] = [];
  const http = createServer((request, response) => {
    const answer = answers[Math.min(paths.length, answers.length - 1)];
    paths.push(`${request.method} ${request.url}`);
    request.resume();
    answer?.(request, response);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    paths,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

const problem =
  (status: number, headers: Record<string, string> = {}) =>
  (_request: unknown, response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify({ detail: 'no', code: 'TOO_BUSY', hint: 'later' }));
  };
const json = (value: unknown) => (_request: unknown, response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
};

describe('errors', () => {
  test.each([
    ['session_old', { code: 'SESSION_ENDED', status: 410 }],
    ['unknown', { code: 'SESSION_UNKNOWN', status: 404 }],
    ['../../metrics', { code: 'SESSION_UNKNOWN', status: 404 }],
  ])('[RS-20] of session %s are typed', async (id, expected) => {
    const failing = client.getSession(id);
    await expect(failing).rejects.toBeInstanceOf(RunnerError);
    await expect(failing).rejects.toMatchObject({ ...expected, hint: expect.stringMatching(/.+/) });
  });

  test('[RS-20] name the field', async () => {
    await expect(client.createSession('../x', 'node')).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      status: 422,
      field: 'project_id',
    });
  });

  test('[RS-20] a key is sent with requests and with WebSockets, any characters in it', async () => {
    const apiKey = 'schlüssel-💡';
    await using locked = await ScriptedServer.start({ apiKey });
    const baseUrl = `http://127.0.0.1:${locked.port}`;
    await expect(new HttpRunnerClient({ baseUrl }).listSessions()).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
    });
    const known = new HttpRunnerClient({ baseUrl, apiKey });
    expect(await known.listSessions()).toHaveLength(1);
    const terminal = await known.openTerminal(SESSION, { rows: 1, columns: 2 });
    expect(terminal.execId).toBe('exec_1');
    terminal.close();
    const stranger = new HttpRunnerClient({ baseUrl, apiKey: 'another key' });
    await expect(stranger.openTerminal(SESSION, { rows: 1, columns: 2 })).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
    });
  });

  test('[RS-20] nobody there: NETWORK, and no doubt about what was not begun', async () => {
    await using gone = await answering(json({}));
    await gone[Symbol.asyncDispose]();
    const nobody = new HttpRunnerClient({ baseUrl: gone.url, retries: { ...QUICK, requests: 2 } });
    await expect(nobody.listSessions()).rejects.toMatchObject({ code: 'NETWORK', status: 0 });
    await expect(nobody.exec(SESSION, { command: 'x' })).rejects.toThrow('cannot reach');
  });

  test('[RS-20] a command whose fate is unknown is not sent again', async () => {
    await using cutting = await answering((request) => request.socket.destroy());
    const cut = new HttpRunnerClient({ baseUrl: cutting.url, retries: QUICK });
    await expect(cut.exec(SESSION, { command: 'x' })).rejects.toThrow(
      'whether POST /v1/sessions/…/exec was carried out is not known',
    );
    await expect(cut.createSession('p', 'node')).rejects.toMatchObject({ code: 'NETWORK' });
    expect(cutting.paths).toEqual(['POST /v1/sessions/session_1/exec', 'POST /v1/sessions']);
    await expect(cut.listSessions()).rejects.toMatchObject({ code: 'NETWORK' });
    expect(cutting.paths.slice(2)).toHaveLength(5);
  });

  test('[RS-20] what is refused with a time to come again is sent again, whatever it is', async () => {
    await using busy = await answering(
      problem(429, { 'retry-after': '0' }),
      problem(503, { 'retry-after': '0' }),
      json({ killed: true, exec_ids: [] }),
    );
    const notices: unknown[] = [];
    const patient = new HttpRunnerClient({
      baseUrl: busy.url,
      retries: QUICK,
      onRetry: ({ error }) => notices.push(error.status),
    });
    expect(await patient.kill(SESSION)).toEqual({ killed: true, exec_ids: [] });
    expect([busy.paths.length, notices]).toEqual([3, [429, 503]]);
  });

  test.each([
    ['without a time', {}],
    ['with too long a time', { 'retry-after': '3600' }],
  ])('[RS-20] what is refused %s is the error', async (_name, headers) => {
    await using busy = await answering(problem(429, headers));
    const failing = new HttpRunnerClient({ baseUrl: busy.url, retries: QUICK }).kill(SESSION);
    await expect(failing).rejects.toMatchObject({ code: 'TOO_BUSY', status: 429 });
    expect(busy.paths).toHaveLength(1);
  });

  test('[RS-20] a reader tries again where a gateway gives up', async () => {
    const gateway = (_request: unknown, response: ServerResponse): void => {
      response.writeHead(502, { 'content-type': 'text/html' });
      response.end('<h1>Bad Gateway</h1>');
    };
    await using flaky = await answering(gateway, gateway, json({ sessions: [] }));
    expect(await new HttpRunnerClient({ baseUrl: flaky.url, retries: QUICK }).listSessions()).toEqual([]);
    await using dead = await answering(gateway);
    const failing = new HttpRunnerClient({ baseUrl: dead.url, retries: QUICK }).kill(SESSION);
    await expect(failing).rejects.toMatchObject({ code: 'BAD_REPLY', status: 502 });
    expect(dead.paths).toHaveLength(1);
  });

  test.each([
    ['no JSON', (_request: unknown, response: ServerResponse): void => void response.end('hello')],
    ['JSON of another form', json({ sessions: [{ session_id: 5 }] })],
  ])('[RS-20] %s is no answer', async (_name, answer) => {
    await using strange = await answering(answer);
    const failing = new HttpRunnerClient({ baseUrl: strange.url, retries: QUICK }).listSessions();
    await expect(failing).rejects.toMatchObject({ code: 'BAD_REPLY' });
    expect(strange.paths).toHaveLength(1);
  });

  test('[RS-20] SECURITY: the key does not follow a redirect', async () => {
    await using thief = await answering(json({ sessions: [] }));
    await using sending = await answering((_request, response) => {
      response.writeHead(307, { location: `${thief.url}/v1/sessions` });
      response.end();
    });
    const misled = new HttpRunnerClient({ baseUrl: sending.url, apiKey: 'secret-key', retries: QUICK });
    await expect(misled.listSessions()).rejects.toMatchObject({ code: 'NETWORK' });
    expect(thief.paths).toEqual([]);
  });

  test('[RS-20] a server that lacks sessions says why', async () => {
    server.sessions.failure = new HotcellError('SESSIONS_UNAVAILABLE', 'no volumes here');
    await expect(client.kill(SESSION)).rejects.toMatchObject({
      code: 'SESSIONS_UNAVAILABLE',
      message: 'no volumes here',
    });
  });
});
