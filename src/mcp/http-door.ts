import type { IncomingMessage, ServerResponse } from 'node:http';
import { toNodeHandler, toWebRequest, type NodeMcpRequestHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, isLegacyRequest, type McpHttpHandler } from '@modelcontextprotocol/server';
import { messageOf } from '../core/errors.ts';
import type { Owner } from '../workbench/api.ts';
import type { McpDoor } from './door.ts';
import { LegacySessions, type LegacyOptions } from './legacy-sessions.ts';
import { answerProblem, toProblem } from './json-rpc-problem.ts';

/** A request that was let in: who sends it, and its body, read and parsed. */
export interface AdmittedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: unknown;
  readonly owner: Owner;
}

/** `/mcp`: both eras of the protocol at one address. It checks no key, no Host and no Origin: the server does, before. */
export class McpHttpDoor {
  readonly #door: McpDoor;
  readonly #modern: McpHttpHandler;
  readonly #answerModern: NodeMcpRequestHandler;
  readonly #legacy: LegacySessions;

  constructor(door: McpDoor, options: LegacyOptions) {
    this.#door = door;
    const onerror = ({ message }: Error): void => door.log.debug({ error: message }, 'mcp request refused');
    this.#modern = createMcpHandler(
      ({ authInfo }) => {
        if (authInfo === undefined) throw new RangeError('nobody said whose request it is');
        return door.makeServer(door.makeDesk({ tenant: authInfo.clientId }, { keepsSession: false }));
      },
      { legacy: 'reject', onerror },
    );
    const { fetch } = this.#modern;
    this.#answerModern = toNodeHandler(
      { fetch: async (...given) => withWords(await fetch(...given)) },
      { onerror },
    );
    this.#legacy = new LegacySessions(door, options);
  }

  /** Never rejects: whatever happens is an answer, or the end of the connection. */
  async answer(admitted: AdmittedRequest): Promise<void> {
    try {
      await this.#route(admitted);
    } catch (error) {
      this.#door.log.error({ error: messageOf(error) }, 'mcp request failed');
      answerProblem(admitted.response, 500, toProblem(-32_603, 'Internal error'));
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#modern.close(), this.#legacy.close()]);
  }

  async #route(admitted: AdmittedRequest): Promise<void> {
    const { request, response, body, owner } = admitted;
    if (await this.#isLegacy(request, body)) {
      await this.#legacy.answer(admitted);
    } else {
      // SECURITY: the only word on whose request it is; the key itself goes no further.
      const auth = { token: '', clientId: owner.tenant, scopes: [] };
      await this.#answerModern(Object.assign(withMethod(request), { auth }), response, body);
    }
  }

  async #isLegacy(request: IncomingMessage, body: unknown): Promise<boolean> {
    // Streams and ends of sessions: without a session there are none in either era.
    if (request.method !== 'POST') return request.headers['mcp-session-id'] !== undefined;
    return isLegacyRequest(await toWebRequest(withMethod(request), body), body);
  }
}

/** A request that our stop cut off has no answer yet; whoever goes away by himself reads none. */
function withWords(response: Response): Response {
  if (response.status !== 499) return response;
  return Response.json(toProblem(-32_000, 'SHUTTING_DOWN: the server is stopping'), { status: 503 });
}

/** The same object. A server's messages have method and address, which the types do not know. */
function withMethod(request: IncomingMessage): IncomingMessage & { method: string; url: string } {
  const { method = '', url = '' } = request;
  return Object.assign(request, { method, url });
}
