import type { ErrorCode } from '../core/errors.ts';
import { EXECUTE_REPLY_EXAMPLE, EXECUTE_REQUEST_EXAMPLES } from './openapi-examples.ts';
import { MCP_OPERATIONS } from './openapi-mcp.ts';
import {
  COMPONENT_SCHEMAS,
  OF_BODIES,
  jsonBody,
  jsonResponse,
  toPaths,
  type Facts,
  type Json,
  type Operation,
} from './openapi-parts.ts';
import { STATUS_OPERATIONS } from './openapi-status.ts';
import { EXEC_OPERATIONS } from './sessions/openapi-execs.ts';
import { FILE_OPERATIONS } from './sessions/openapi-files.ts';
import { SESSION_OPERATIONS } from './sessions/openapi-sessions.ts';

const OF_EXECUTE: readonly ErrorCode[] = [
  ...OF_BODIES,
  'LANGUAGE_UNKNOWN',
  'LIMIT_TOO_HIGH',
  'LIMIT_TOO_LOW',
  'POLICY_UNENFORCEABLE',
  'TOO_BUSY',
  'LANGUAGE_UNAVAILABLE',
  'DRIVER_UNAVAILABLE',
  'IMAGE_UNAVAILABLE',
  'CELL_START_FAILED',
  'CELL_LOST',
];

const EXECUTE: Operation = {
  at: 'post /execute/{language}',
  operationId: 'execute',
  summary: 'Runs one program and answers with what it did',
  description: 'Errors of the program (syntax, exception, timeout, memory) are results with status 200.',
  requestBody: jsonBody('ExecuteRequest', EXECUTE_REQUEST_EXAMPLES),
  replies: { 200: jsonResponse('the program has ended', 'ExecuteReply', EXECUTE_REPLY_EXAMPLE) },
  errors: OF_EXECUTE,
};

/** The OpenAPI document of this server, as it is configured now. Fields come from the schemas of the wire. */
export function makeOpenApi(facts: Facts): Json {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Hotcell',
      version: facts.version,
      description: 'Runs code in cells that are already booted. Unknown paths answer 404, wrong methods 405.',
    },
    paths: toPaths(facts, [
      EXECUTE,
      ...SESSION_OPERATIONS,
      ...EXEC_OPERATIONS,
      ...FILE_OPERATIONS,
      ...MCP_OPERATIONS,
      ...STATUS_OPERATIONS,
    ]),
    components: {
      schemas: COMPONENT_SCHEMAS,
      ...(facts.needsKey ? { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } } : {}),
    },
  };
}
