import assert from 'node:assert/strict';
import type { ErrorReply } from '../../src/wire/execute.ts';
import type { EgressReply } from '../../src/wire/egress.ts';
import type { ExecReply, OutputReply, SessionExecReply } from '../../src/wire/session-exec.ts';
import type { SessionDetailReply, SessionReply } from '../../src/wire/sessions.ts';

export interface Answer<Body> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body & ErrorReply;
}

/** What one caller does with the sessions of a server, as plain HTTP: the server is under test, not its client. */
export class SessionDoor {
  readonly #url: () => string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: () => string, key?: string) {
    this.#url = url;
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  }

  async ask<Body = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<Answer<Body>> {
    const response = await fetch(`${this.#url()}/v1/sessions${path}`, {
      method,
      headers: { ...this.#headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (text === '' ? {} : JSON.parse(text)) as Body & ErrorReply,
    };
  }

  /** Fails unless the answer is the one expected of a caller who does nothing wrong. */
  async get<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    const answer = await this.ask<Body>(method, path, body);
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  async create(request: object = {}): Promise<Hand> {
    const session = await this.get<SessionReply>('POST', '', {
      project_id: `p${crypto.randomUUID().slice(0, 8)}`,
      runtime_type: 'shell',
      ...request,
    });
    return this.hold(session);
  }

  hold(session: SessionReply): Hand {
    return new Hand(this, session);
  }

  async list(): Promise<SessionReply[]> {
    return (await this.get<{ sessions: SessionReply[] }>('GET', '')).sessions;
  }
}

/** One session in the hand of a caller. */
export class Hand implements AsyncDisposable {
  readonly id: string;
  readonly made: SessionReply;
  readonly #door: SessionDoor;

  constructor(door: SessionDoor, made: SessionReply) {
    this.#door = door;
    this.made = made;
    this.id = made.session_id;
  }

  /** The same session at another server, or in the hand of another caller. */
  at(door: SessionDoor): Hand {
    return new Hand(door, this.made);
  }

  ask<Body = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<Answer<Body>> {
    return this.#door.ask<Body>(method, `/${this.id}${path}`, body);
  }

  get<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    return this.#door.get<Body>(method, `/${this.id}${path}`, body);
  }

  exec(command: string, more: object = {}): Promise<SessionExecReply> {
    return this.get<SessionExecReply>('POST', '/exec', { command, timeout_s: 60, ...more });
  }

  /** What a command prints; fails unless it succeeds. */
  async print(command: string, more: object = {}): Promise<string> {
    const reply = await this.exec(command, more);
    assert.equal(reply.exit_code, 0, JSON.stringify(reply));
    return reply.stdout;
  }

  async begin(command: string, more: object = {}): Promise<string> {
    const body = { command, background: true, ...more };
    return (await this.get<{ exec_id: string }>('POST', '/exec', body)).exec_id;
  }

  /** How a command ended; waits for its end. */
  async result(execId: string, waitSeconds = 60): Promise<NonNullable<ExecReply['result']>> {
    const { result } = await this.get<ExecReply>('GET', `/execs/${execId}?wait_s=${waitSeconds}`);
    assert.ok(result !== null, `${execId} has not ended in ${waitSeconds} s`);
    return result;
  }

  /** All output that is kept of a command, as text. */
  async output(execId: string): Promise<string> {
    let text = '';
    for (let from = 0; ;) {
      const reply = await this.get<OutputReply>('GET', `/execs/${execId}/output?from=${from}`);
      assert.deepEqual(reply.cut, []);
      text += reply.chunks.map(({ data }) => data).join('');
      if (reply.next === from) return text;
      from = reply.next;
    }
  }

  detail(): Promise<SessionDetailReply> {
    return this.get<SessionDetailReply>('GET', '');
  }

  egress(): Promise<EgressReply> {
    return this.get<EgressReply>('GET', '/egress');
  }

  async remove(): Promise<void> {
    await this.get('DELETE', '');
  }

  /** Also one that has ended already. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { status } = await this.ask('DELETE', '');
    assert.ok([200, 410].includes(status), `DELETE: ${status}`);
  }

  /** What an attack must not have changed: the next command gets the right answer, and files can be written and read. */
  async expectUsable(): Promise<void> {
    const { stdout, ok } = await this.exec('echo $((6 * 7))');
    assert.deepEqual({ stdout, ok }, { stdout: '42\n', ok: true });
    await this.get('POST', '/upload', { files: [{ path: 'usable.txt', content: 'yes' }] });
    const file = await this.get<{ content: string }>('GET', '/fs?path=usable.txt');
    assert.equal(file.content, 'yes');
  }
}
