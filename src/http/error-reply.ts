import type { FastifyReply, FastifyRequest } from 'fastify';
import { HotcellError, toHotcellError } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { ErrorReply } from '../wire/execute.ts';
import { API_HEADERS } from './reply-headers.ts';

/** The one place where a thrown error becomes an HTTP answer: sets status and headers, returns the body. */
export function makeErrorAnswer(log: Log) {
  return (thrown: unknown, request: FastifyRequest, reply: FastifyReply): ErrorReply => {
    const { url: route, bodyLimit } = request.routeOptions ?? {};
    const error = fromFramework(thrown, bodyLimit) ?? toHotcellError(thrown);
    if (error.status >= 500) logFailure(log, error, { method: request.method, route });
    reply.code(error.status).headers(API_HEADERS);
    if (error.retryAfterSeconds !== undefined) {
      reply.header('retry-after', String(Math.ceil(error.retryAfterSeconds)));
    }
    if (error.code === 'UNAUTHORIZED') reply.header('www-authenticate', 'Bearer');
    return toErrorReply(error, { ofExecution: route?.startsWith('/execute/') === true });
  };
}

export function toErrorReply(error: HotcellError, { ofExecution }: { ofExecution: boolean }): ErrorReply {
  return {
    // SECURITY: the message of an unforeseen error may hold paths or data of others.
    detail: error.code === 'INTERNAL' ? 'something unforeseen went wrong inside Hotcell' : error.message,
    code: error.code,
    hint: error.hint,
    ...(error.field === undefined ? {} : { field: error.field }),
    ...(ofExecution && error.status >= 500 ? { stdout: '', stderr: '', exit_code: -1 } : {}),
  };
}

/** Fastify's own complaints about a request, in our words. Undefined for everything else. */
function fromFramework(thrown: unknown, bodyLimitBytes: number | undefined): HotcellError | undefined {
  if (thrown instanceof HotcellError || !(thrown instanceof Error) || !('statusCode' in thrown))
    return undefined;
  const status = Number(thrown.statusCode);
  const cause = { cause: thrown };
  if (status === 413) {
    return new HotcellError('BODY_TOO_LARGE', `the body has more than ${bodyLimitBytes} bytes`, cause);
  }
  if (status === 415)
    return new HotcellError('UNSUPPORTED_MEDIA_TYPE', 'the content type is not JSON', cause);
  if (status === 404 || status === 414 || ('code' in thrown && thrown.code === 'FST_ERR_BAD_URL')) {
    return new HotcellError('NOT_FOUND', 'there is no such path', cause);
  }
  if (status >= 400 && status < 500) {
    return new HotcellError('INVALID_JSON', 'the body did not arrive as its headers announced', cause);
  }
  return undefined;
}

function logFailure(log: Log, error: HotcellError, fields: Record<string, unknown>): void {
  const stack = error.code === 'INTERNAL' && error.cause instanceof Error ? { stack: error.cause.stack } : {};
  log.error({ ...fields, code: error.code, error: error.message, ...stack }, 'request failed');
}
