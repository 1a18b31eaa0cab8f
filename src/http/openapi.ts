import type { ErrorCode } from '../core/errors.ts';
import { EXECUTE_REPLY_EXAMPLE, EXECUTE_REQUEST_EXAMPLES } from './openapi-examples.ts';
import { mcpPaths } from './openapi-mcp.ts';
import {
  COMPONENT_SCHEMAS,
  OF_BODIES,
  jsonBody,
  jsonResponse,
  operation,
  pathParameter,
  type Facts,
  type Json,
} from './openapi-parts.ts';
import { statusPaths } from './openapi-status.ts';
import { execPaths } from './sessions/openapi-execs.ts';
import { filePaths } from './sessions/openapi-files.ts';
import { sessionPaths } from './sessions/openapi-sessions.ts';

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

/** The OpenAPI document of this server, as it is configured now. Fields come from the schemas of the wire. */
export function makeOpenApi(facts: Facts): Json {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Hotcell',
      version: facts.version,
      description: 'Runs code in cells that are already booted. Unknown paths answer 404, wrong methods 405.',
    },
    paths: {
      ...executePaths(facts),
      ...sessionPaths(facts),
      ...execPaths(facts),
      ...filePaths(facts),
      ...mcpPaths(facts),
      ...statusPaths(facts),
    },
    components: {
      schemas: COMPONENT_SCHEMAS,
      ...(facts.needsKey ? { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } } : {}),
    },
  };
}

function executePaths(facts: Facts): Json {
  const { languages } = facts;
  return {
    '/execute/{language}': {
      post: operation(facts, {
        operationId: 'execute',
        summary: 'Runs one program and answers with what it did',
        description:
          'Errors of the program (syntax, exception, timeout, memory) are results with status 200.',
        parameters: [
          pathParameter('language', {
            type: 'string',
            ...(languages.length > 0 ? { enum: languages } : {}),
          }),
        ],
        requestBody: jsonBody('ExecuteRequest', EXECUTE_REQUEST_EXAMPLES),
        replies: { 200: jsonResponse('the program has ended', 'ExecuteReply', EXECUTE_REPLY_EXAMPLE) },
        errors: OF_EXECUTE,
      }),
    },
  };
}
