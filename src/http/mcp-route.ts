import type { FastifyInstance } from 'fastify';
import { HotcellError } from '../core/errors.ts';
import type { HttpDependencies } from './dependencies.ts';
import type { Callers } from './guard.ts';
import { BodyRoom } from './sessions/body-room.ts';
import { unreadBytes } from './unread-body.ts';

/** What clients of MCP send beside the usual headers. */
export const MCP_REQUEST_HEADERS = ['mcp-protocol-version', 'mcp-session-id', 'mcp-method', 'mcp-name'];

/** Largest bodies that may be under way at once. */
const LARGE_BODIES = 4;

/** `/mcp`: guarded as every other route; what is asked and answered is not our business. */
export function addMcpRoute(app: FastifyInstance, deps: HttpDependencies, callers: Callers): void {
  const { bodyLimitBytes } = deps.options.mcp;
  const bodies = new BodyRoom({
    freeBytes: deps.options.bodyLimitBytes,
    totalBytes: LARGE_BODIES * bodyLimitBytes,
  });
  app.route({
    method: ['GET', 'POST', 'DELETE'],
    url: '/mcp',
    bodyLimit: bodyLimitBytes,
    onRequest: (request, reply, done) => {
      // Before the body is read.
      if (deps.mcp === undefined)
        throw new HotcellError(
          'NOT_FOUND',
          `MCP is not served here: ${deps.mcpProblem ?? 'it is turned off'}`,
          {
            hint: 'See the setting mcp.enabled.',
          },
        );
      bodies.take(request, reply);
      done();
    },
    handler: async (request, reply) => {
      const { tenant } = callers.of(request);
      // It writes to the connection itself, so it must have the headers of every answer.
      for (const [name, value] of Object.entries(reply.getHeaders()))
        if (value !== undefined) reply.raw.setHeader(name, value);
      if (unreadBytes(request.raw) > 0) reply.raw.setHeader('connection', 'close');
      reply.hijack();
      await deps.mcp?.answer({
        request: request.raw,
        response: reply.raw,
        body: request.body,
        owner: { tenant: tenant.name },
      });
    },
  });
}
