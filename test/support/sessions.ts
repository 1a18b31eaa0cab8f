import assert from 'node:assert/strict';
import { join } from 'node:path';
import type * as z from 'zod';
import { EventConnection, type ReceivedEvent } from '../../src/http/sessions/event-reader.double.ts';
import { ErrorReply } from '../../src/wire/execute.ts';
import { BackgroundReply, ExecReply, ExecsReply, SessionExecReply } from '../../src/wire/session-exec.ts';
import { SessionDetailReply, SessionReply, SessionsReply } from '../../src/wire/sessions.ts';
import { waitFor } from './leftovers.ts';
import type { Way } from './served-by.ts';
import { TestServer, dataDirectoryOf } from './server.ts';
import { clearSessions, describeSessions, siteOf } from './session-remains.ts';

/** Sessions only: no cells for languages, and tests may ask as often as they like. */
export function startSessionServer(
  way: Way,
  { args = [], env = {} }: { args?: readonly string[]; env?: Readonly<Record<string, string>> } = {},
): Promise<TestServer> {
  const quiet = ['--set', 'pool.size=0', '--set', 'sessions.rateLimit.perMinute=0'];
  return TestServer.start({ way, env, args: [...quiet, ...args] });
}

/** Deletes every session, stops the server, and fails if anything is left on the host but, if need be, dependencies. */
export async function stopSessionServer(server: TestServer, { keepsVolumes = false } = {}): Promise<void> {
  const { stateDirectory, way } = server;
  const driver = way?.driver ?? 'oci';
  try {
    const { sessions } = (await call(server, 'GET', '/v1/sessions')).as(SessionsReply);
    await Promise.all(sessions.map(({ session_id: id }) => call(server, 'DELETE', `/v1/sessions/${id}`)));
    const code = await server.stop();
    const found = await describeSessions(siteOf(stateDirectory, driver));
    const volumes = join(dataDirectoryOf(stateDirectory), 'volumes');
    const left = found.filter((line) => !keepsVolumes || !line.startsWith(volumes));
    assert.deepEqual({ code, left }, { code: 0, left: [] });
  } finally {
    await server.stop('SIGKILL');
    await clearSessions(siteOf(stateDirectory, driver));
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
  /** Fails unless it is a good answer of that form. */
  as<Schema extends z.ZodType>(schema: Schema): z.infer<Schema>;
  /** Fails unless it is a refusal in the form of all refusals. */
  readonly refusal: { status: number; code: string; field?: string | undefined; detail: string };
}

export async function call(
  server: TestServer,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  sent: { readonly body?: unknown; readonly headers?: Record<string, string> } = {},
): Promise<Answer> {
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { ...(sent.body === undefined ? {} : { 'content-type': 'application/json' }), ...sent.headers },
    ...(sent.body === undefined ? {} : { body: JSON.stringify(sent.body) }),
  });
  const { status, headers } = response;
  const body: unknown = await response.json();
  return {
    status,
    headers,
    body,
    as: (schema) => {
      assert.ok(status < 300, `${method} ${path}: ${status} ${JSON.stringify(body)}`);
      return schema.parse(body);
    },
    get refusal() {
      assert.ok(status >= 400, `${method} ${path} was not refused: ${JSON.stringify(body)}`);
      const { code, field, detail } = ErrorReply.parse(body);
      return { status, code, detail, ...(field === undefined ? {} : { field }) };
    },
  };
}

type ExecBody = { readonly command: string } & Readonly<Record<string, unknown>>;
const toBody = (command: string | ExecBody): ExecBody =>
  typeof command === 'string' ? { command } : command;

let projects = 0;

/** A session of a project that no other test has, gone at the end of its scope. */
export async function openSession(
  server: TestServer,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<TestSession> {
  const body = { project_id: `project-${(projects += 1)}`, runtime_type: 'shell', ...fields };
  const reply = (await call(server, 'POST', '/v1/sessions', { body })).as(SessionReply);
  return new TestSession(server, reply);
}

export class TestSession implements AsyncDisposable {
  readonly server: TestServer;
  readonly id: string;
  readonly made: SessionReply;

  constructor(server: TestServer, made: SessionReply) {
    this.server = server;
    this.id = made.session_id;
    this.made = made;
  }

  get workspace(): string {
    return this.made.workspace_path;
  }

  get path(): string {
    return `/v1/sessions/${this.id}`;
  }

  get(path = ''): Promise<Answer> {
    return call(this.server, 'GET', `${this.path}${path}`);
  }

  post(path: string, body?: unknown): Promise<Answer> {
    return call(this.server, 'POST', `${this.path}${path}`, { body });
  }

  async detail(): Promise<SessionDetailReply> {
    return (await this.get()).as(SessionDetailReply);
  }

  /** One command in the foreground, to its end. */
  async exec(command: string | ExecBody): Promise<SessionExecReply> {
    return (await this.post('/exec', toBody(command))).as(SessionExecReply);
  }

  /** Its standard output, of a command that must not fail. */
  async print(command: string | ExecBody): Promise<string> {
    const { ok, stdout, stderr, end } = await this.exec(command);
    assert.ok(ok, `${JSON.stringify(command)}: ${end.message}: ${stderr}`);
    return stdout;
  }

  /** A command in the background; resolves with its id. */
  async begin(command: string | ExecBody): Promise<string> {
    const answer = await this.post('/exec', { ...toBody(command), background: true });
    assert.equal(answer.status, 202);
    return answer.as(BackgroundReply).exec_id;
  }

  async execs(): Promise<ExecReply[]> {
    return (await this.get('/execs')).as(ExecsReply).execs;
  }

  async find(execId: string, waitSeconds = 0): Promise<ExecReply> {
    const query = waitSeconds > 0 ? `?wait_s=${waitSeconds}` : '';
    return (await this.get(`/execs/${execId}${query}`)).as(ExecReply);
  }

  /** Until a command has written this many bytes. */
  async untilOutput(execId: string, bytes: number): Promise<void> {
    await waitFor(`${execId} writes ${bytes} bytes`, async () => {
      return (await this.find(execId)).output_bytes >= bytes;
    });
  }

  /** Until a command in the foreground has written something; resolves with its id. */
  async untilRunning(command: string): Promise<string> {
    let id: string | undefined;
    await waitFor(`${command} writes something`, async () => {
      const found = (await this.execs()).find((exec) => exec.command === command && exec.state === 'running');
      id = found?.output_bytes === 0 ? undefined : found?.exec_id;
      return id !== undefined;
    });
    return id ?? '';
  }

  events(
    path: string,
    sent: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<EventConnection> {
    return EventConnection.open({
      port: Number(new URL(this.server.url).port),
      path: `${this.path}${path}`,
      headers: {
        ...(sent.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...sent.headers,
      },
      ...(sent.body === undefined ? {} : { method: 'POST', body: JSON.stringify(sent.body) }),
    });
  }

  async destroy(): Promise<void> {
    await call(this.server, 'DELETE', this.path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }
}

/** What a client of either form of events makes of them: the bytes of one stream. */
export function bytesOf(events: readonly ReceivedEvent[], stream: 'stdout' | 'stderr'): Buffer {
  return Buffer.concat(events.map((event) => toBytes(event, stream)));
}

function toBytes({ type, data }: ReceivedEvent, stream: string): Buffer {
  if (type === stream) return Buffer.from(data);
  if (type === `${stream}_base64`) return Buffer.from(data, 'base64');
  if (type !== 'message') return Buffer.alloc(0);
  const message = JSON.parse(data) as { type: string; data: string; base64?: string };
  if (message.type !== stream) return Buffer.alloc(0);
  return message.base64 === undefined ? Buffer.from(message.data) : Buffer.from(message.base64, 'base64');
}
