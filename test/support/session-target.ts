import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { expect } from 'vitest';
import { ERRORS } from '../../src/core/errors.ts';
import type { ErrorReply } from '../../src/wire/execute.ts';
import type { ExecsReply } from '../../src/wire/session-exec.ts';
import type { ChangesReply } from '../../src/wire/session-files.ts';
import type * as z from 'zod';
import { OCI_FRESH } from './served-by.ts';
import type { Hand } from './session-door.ts';
import { ServedSessions } from './session-site.ts';

export interface Refusal {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Partial<ErrorReply>;
}

interface Sent {
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

export const JSON_TYPE = { 'content-type': 'application/json' };

/** A session with a command that waits for input, for requests that should be refused. */
export class SessionTarget implements AsyncDisposable {
  readonly served: ServedSessions;
  readonly hand: Hand;
  readonly exec: string;

  private constructor(served: ServedSessions, hand: Hand, exec: string) {
    this.served = served;
    this.hand = hand;
    this.exec = exec;
  }

  static async open(args: readonly string[] = []): Promise<SessionTarget> {
    const served = await ServedSessions.open({ way: OCI_FRESH, args });
    const hand = await served.door().create({ project_id: 'target' });
    return new SessionTarget(served, hand, await hand.begin('cat'));
  }

  /** As it is: `fetch` would tidy up paths and headers. */
  async send(method: string, path: string, { headers = {}, body }: Sent = {}): Promise<Refusal> {
    const { hostname, port } = new URL(this.served.server.url);
    // Otherwise Node sends bodies of some methods without saying how long they are.
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const all = { ...headers, ...length };
    const request = httpRequest({ hostname, port, method, path, headers: all, agent: false });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      body: text.startsWith('{') ? (JSON.parse(text) as Partial<ErrorReply>) : {},
    };
  }

  sendJson(method: string, path: string, body: unknown): Promise<Refusal> {
    return this.send(method, path, { headers: JSON_TYPE, body: JSON.stringify(body) });
  }

  /** With the body that belongs to it, and whatever is added to its address. */
  sendRoute({ method, path, body }: Route, query = ''): Promise<Refusal> {
    return body === undefined ? this.send(method, path + query) : this.sendJson(method, path + query, body);
  }

  /** What no refused request may have changed. */
  async #look(): Promise<unknown> {
    const [sessions, { execs }, { changes }, { allow }] = await Promise.all([
      this.served.door().list(),
      this.hand.get<z.infer<typeof ExecsReply>>('GET', '/execs'),
      this.hand.get<ChangesReply>('GET', '/changes'),
      this.hand.egress(),
    ]);
    return {
      sessions: sessions.map(({ session_id: id, state }) => [id, state]),
      execs: execs.map(({ exec_id: id, state, output_bytes: bytes }) => [id, state, bytes]),
      changes,
      allow,
    };
  }

  async expectUnchanged(work: () => Promise<void>): Promise<void> {
    const before = await this.#look();
    await work();
    expect(await this.#look()).toEqual(before);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.served[Symbol.asyncDispose]();
  }
}

/** A refusal that helps: a known code with its own status, words, and what to do. */
export function expectHelpful(refusal: Refusal, what: string): void {
  const { status } = refusal;
  const { code = '', detail = '', hint = '' } = refusal.body;
  const known = Object.entries(ERRORS).find(([name]) => name === code)?.[1].status;
  expect({ what, code, status, ours: status >= 500, words: detail !== '' && hint !== '' }).toEqual({
    what,
    code,
    status: known,
    ours: false,
    words: true,
  });
}

export interface Route {
  readonly method: string;
  readonly path: string;
  /** A body that would be taken. */
  readonly body?: object;
}

/** Every route of one session, with a body that is right where it has one. */
export function routes(id: string, execId: string): Route[] {
  const at = `/v1/sessions/${id}`;
  return [
    { method: 'GET', path: at },
    { method: 'DELETE', path: at },
    { method: 'POST', path: `${at}/keep-alive` },
    { method: 'POST', path: `${at}/pause` },
    { method: 'POST', path: `${at}/resume` },
    { method: 'POST', path: `${at}/exec`, body: { command: 'touch made' } },
    { method: 'GET', path: `${at}/execs` },
    { method: 'GET', path: `${at}/execs/${execId}` },
    { method: 'GET', path: `${at}/execs/${execId}/output` },
    { method: 'POST', path: `${at}/execs/${execId}/stdin`, body: { data: 'x' } },
    { method: 'POST', path: `${at}/execs/${execId}/kill` },
    { method: 'POST', path: `${at}/kill` },
    { method: 'POST', path: `${at}/upload`, body: { files: [{ path: 'made', content: 'x' }] } },
    { method: 'POST', path: `${at}/sync`, body: { files: [{ path: 'made', content: 'x' }] } },
    {
      method: 'POST',
      path: `${at}/apply_patch`,
      body: { diff: '--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+x\n' },
    },
    { method: 'GET', path: `${at}/changes` },
    { method: 'GET', path: `${at}/fs` },
    { method: 'GET', path: `${at}/archive` },
    { method: 'GET', path: `${at}/egress` },
    { method: 'PUT', path: `${at}/egress`, body: { allow: [] } },
  ];
}

export const CREATE: Route = {
  method: 'POST',
  path: '/v1/sessions',
  body: { project_id: 'p', runtime_type: 'shell' },
};
