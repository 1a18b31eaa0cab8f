import { randomUUID } from 'node:crypto';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { isInitializeRequest } from '@modelcontextprotocol/server';
import type { Desk } from './desk.ts';
import type { McpDoor } from './door.ts';
import type { AdmittedRequest } from './http-door.ts';
import { answerProblem, toProblem } from './json-rpc-problem.ts';

const CHECKS_PER_IDLE_TIME = 4;
const SERVER_ERROR = -32_000;
const SESSION_NOT_FOUND = -32_001;

export interface LegacyOptions {
  /** How many at once, all tenants together. */
  readonly sessions: number;
  readonly idleMs: number;
}

interface LegacySession {
  readonly id: string;
  readonly tenant: string;
  readonly transport: NodeStreamableHTTPServerTransport;
  readonly desk: Desk;
  /** Requests and streams that are open. */
  open: number;
  usedAt: number;
}

/** The protocol's own sessions, which it had until 2025: each has one workbench for calls that name none. */
export class LegacySessions {
  readonly #door: McpDoor;
  readonly #options: LegacyOptions;
  readonly #sessions = new Map<string, LegacySession>();
  readonly #timer: NodeJS.Timeout;

  constructor(door: McpDoor, options: LegacyOptions) {
    this.#door = door;
    this.#options = options;
    this.#timer = setInterval(() => this.#endIdle(), options.idleMs / CHECKS_PER_IDLE_TIME).unref();
  }

  async answer(admitted: AdmittedRequest): Promise<void> {
    const { request, response, body, owner } = admitted;
    const id = request.headers['mcp-session-id'];
    if (id === undefined) {
      const problem = toProblem(SERVER_ERROR, 'Bad Request: the header Mcp-Session-Id is missing');
      if (isInitializeRequest(body)) await this.#begin(admitted);
      else answerProblem(response, 400, problem);
      return;
    }
    const session = this.#sessions.get(String(id));
    // SECURITY: the session of somebody else is as unknown as one that never was.
    if (session === undefined || session.tenant !== owner.tenant) {
      answerProblem(response, 404, toProblem(SESSION_NOT_FOUND, 'Session not found'));
      return;
    }
    await this.#serve(session, admitted);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#sessions.values()].map(({ transport }) => transport.close()));
  }

  async #begin(admitted: AdmittedRequest): Promise<void> {
    const { response, owner } = admitted;
    if (!this.#makeRoom(owner.tenant)) {
      const words = 'Too many sessions; end one with DELETE, or try again later';
      answerProblem(response, 429, toProblem(SERVER_ERROR, words));
      return;
    }
    const id = randomUUID();
    const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: () => id });
    const desk = this.#door.makeDesk(owner, { keepsSession: true });
    const session = { id, tenant: owner.tenant, transport, desk, open: 0, usedAt: Date.now() };
    this.#sessions.set(id, session);
    const server = this.#door.makeServer(desk);
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- It has no other way.
    server.server.onclose = () => {
      this.#sessions.delete(id);
      this.#door.afterwards(desk.close());
    };
    await server.connect(transport);
    await this.#serve(session, admitted);
    // A handshake that was refused has no session.
    if (transport.sessionId === undefined) await transport.close();
  }

  async #serve(session: LegacySession, { request, response, body }: AdmittedRequest): Promise<void> {
    session.open += 1;
    response.once('close', () => {
      session.open -= 1;
      session.usedAt = Date.now();
    });
    await session.transport.handleRequest(request, response, body);
  }

  /** Whether one more fits in. The oldest idle session of the same tenant makes room: clients often forget to end them. */
  #makeRoom(tenant: string): boolean {
    if (this.#sessions.size < this.#options.sessions) return true;
    const idle = [...this.#sessions.values()].filter((one) => one.tenant === tenant && one.open === 0);
    const [oldest] = idle.toSorted((one, other) => one.usedAt - other.usedAt);
    if (oldest === undefined) return false;
    this.#end(oldest);
    return true;
  }

  #endIdle(): void {
    const since = Date.now() - this.#options.idleMs;
    for (const session of this.#sessions.values())
      if (session.open === 0 && session.usedAt <= since) this.#end(session);
  }

  #end(session: LegacySession): void {
    this.#sessions.delete(session.id);
    this.#door.afterwards(session.transport.close());
  }
}
