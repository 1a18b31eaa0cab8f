import cors from '@fastify/cors';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { HotcellError } from '../core/errors.ts';
import { toOrigins } from './addresses.ts';
import { AllowedMethods } from './allowed-methods.ts';
import { answerClientError } from './client-error.ts';
import type { HttpDependencies } from './dependencies.ts';
import { addDocsRoutes } from './docs-routes.ts';
import { makeErrorAnswer } from './error-reply.ts';
import { addExecuteRoute } from './execute-route.ts';
import { Callers, makeAddressCheck, mayComeEmpty, requireJsonType } from './guard.ts';
import { parseJsonObject } from './json-body.ts';
import { MCP_REQUEST_HEADERS, addMcpRoute } from './mcp-route.ts';
import { OpenConnections } from './open-connections.ts';
import { OpenStreams } from './open-streams.ts';
import { API_HEADERS } from './reply-headers.ts';
import { SessionDoor } from './sessions/session-door.ts';
import { addSessionRoutes } from './sessions/session-routes.ts';
import { isTerminalUpgrade } from './sessions/terminal-route.ts';
import { addStatusRoutes } from './status-routes.ts';
import { answerBeforeBody } from './unread-body.ts';

export type { HttpDependencies, HttpOptions } from './dependencies.ts';

const HEADERS_TIMEOUT_MS = 10_000;
/** For all of a request, and so for the largest upload over a slow line. */
const REQUEST_TIMEOUT_MS = 300_000;
const TIMEOUT_CHECK_MS = 5_000;

/** The HTTP door, complete but not listening yet. */
export function buildHttpServer(deps: HttpDependencies): FastifyInstance {
  const { log, options } = deps;
  const answerError = makeErrorAnswer(log);
  const app = fastify({
    logger: false,
    bodyLimit: options.bodyLimitBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      shouldUpgradeCallback: isTerminalUpgrade,
    },
    forceCloseConnections: 'idle',
    // Fastify would answer with a body of its own form; the hook below answers with ours.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, request: FastifyRequest, reply: FastifyReply) => {
      // No hook sees this answer.
      const body = JSON.stringify(answerError(error, request, reply));
      void reply.type('application/json; charset=utf-8').send(answerBeforeBody(request, reply, body));
    },
  });
  app.setErrorHandler(answerError);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    done(null, body.length === 0 && mayComeEmpty(request) ? undefined : parseJsonObject(body));
  });
  const callers = new Callers(deps.tenants);
  const streams = new OpenStreams();
  addHooks(app, deps, { callers, streams });
  addExecuteRoute(app, deps.runs);
  addSessionRoutes(app, new SessionDoor(deps, { callers, streams }));
  addMcpRoute(app, deps, callers);
  addStatusRoutes(app, deps);
  addDocsRoutes(app, deps);
  return app;
}

interface Watchers {
  readonly callers: Callers;
  readonly streams: OpenStreams;
}

/** The order matters: foreign pages are refused before CORS answers, and the key is asked for after a preflight. */
function addHooks(app: FastifyInstance, { log, options }: HttpDependencies, watchers: Watchers): void {
  const { callers, streams } = watchers;
  const checkAddress = makeAddressCheck(options);
  const allowedMethods = new AllowedMethods();
  allowedMethods.watch(app);
  const connections = new OpenConnections(app.server);
  let closing = false;
  app.addHook('preClose', (done) => {
    closing = true;
    streams.stop();
    connections.close();
    done();
  });

  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(API_HEADERS);
    checkAddress(request);
    if (request.method === 'OPTIONS' && !isPreflight(request.headers)) allowedMethods.refuse(request, reply);
    done();
  });
  void app.register(cors, {
    origin: toOrigins(options.corsOrigins),
    methods: ['GET', 'POST', 'PUT', 'DELETE'],
    allowedHeaders: ['content-type', 'authorization', 'last-event-id', ...MCP_REQUEST_HEADERS],
    exposedHeaders: ['x-hotcell-exec-id', 'retry-after', 'mcp-session-id'],
    credentials: false,
  });
  app.addHook('onRequest', (request, reply, done) => {
    callers.admit(request);
    if (closing && request.routeOptions.url !== '/livez')
      throw new HotcellError('SHUTTING_DOWN', 'the server is stopping');
    // Here, and not in a handler for unknown routes, so that their bodies are never read.
    if (request.is404) allowedMethods.refuse(request, reply);
    if (request.method === 'POST' || request.method === 'PUT') requireJsonType(request);
    done();
  });

  // A connection that is busy when the stop begins must not be kept for later.
  app.addHook('onSend', (request, reply, payload, done) => {
    if (closing) reply.header('connection', 'close');
    done(null, answerBeforeBody(request, reply, payload));
  });

  // SECURITY: the route, not the address; queries, headers and bodies may hold secrets.
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown';
    const fields = { method: request.method, route, status: reply.statusCode, ms: reply.elapsedTime };
    log.debug(fields, 'request served');
    // Nobody reads requests from this connection any more, so it must not stay after a refusal.
    if (isTerminalUpgrade(request.raw)) request.raw.socket.destroySoon();
    done();
  });
}

function isPreflight(headers: FastifyRequest['headers']): boolean {
  return headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}
