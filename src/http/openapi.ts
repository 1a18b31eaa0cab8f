import * as z from 'zod';
import { ERRORS, type ErrorCode } from '../core/errors.ts';
import { ErrorReply, ExecuteReply, ExecuteRequest, HealthReply, LanguagesReply } from '../wire/execute.ts';
import {
  ERROR_DETAILS,
  EXECUTE_REPLY_EXAMPLE,
  EXECUTE_REQUEST_EXAMPLES,
  HEALTH_EXAMPLE,
  LANGUAGES_EXAMPLE,
  METRICS_EXAMPLE,
} from './openapi-examples.ts';

type Json = Record<string, unknown>;

const SCHEMAS = { ExecuteRequest, ExecuteReply, ErrorReply, HealthReply, LanguagesReply };

const EVERYWHERE: readonly ErrorCode[] = [
  'BAD_REQUEST',
  'REQUEST_TIMEOUT',
  'HEADERS_TOO_LARGE',
  'HOST_REFUSED',
  'ORIGIN_REFUSED',
  'SHUTTING_DOWN',
  'INTERNAL',
];
const OF_EXECUTE: readonly ErrorCode[] = [
  'INVALID_JSON',
  'LANGUAGE_UNKNOWN',
  'BODY_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'INVALID_REQUEST',
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

interface Facts {
  readonly version: string;
  readonly needsKey: boolean;
  readonly languages: readonly string[];
}

/** The OpenAPI document of this server, as it is configured now. Fields come from the schemas of the wire. */
export function makeOpenApi({ version, needsKey, languages }: Facts): Json {
  const behindKey = needsKey ? { security: [{ key: [] }] } : {};
  const errors = (codes: readonly ErrorCode[]): Json =>
    toErrorResponses(needsKey ? ['UNAUTHORIZED', ...codes, ...EVERYWHERE] : [...codes, ...EVERYWHERE]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Hotcell',
      version,
      description: 'Runs code in cells that are already booted. Unknown paths answer 404, wrong methods 405.',
    },
    paths: {
      '/execute/{language}': {
        post: {
          operationId: 'execute',
          summary: 'Runs one program and answers with what it did',
          description:
            'Errors of the program (syntax, exception, timeout, memory) are results with status 200.',
          ...behindKey,
          parameters: [
            {
              name: 'language',
              in: 'path',
              required: true,
              schema: { type: 'string', ...(languages.length > 0 ? { enum: languages } : {}) },
            },
          ],
          requestBody: {
            required: true,
            content: {
              'application/json': { schema: reference('ExecuteRequest'), examples: EXECUTE_REQUEST_EXAMPLES },
            },
          },
          responses: {
            200: jsonResponse('the program has ended', 'ExecuteReply', EXECUTE_REPLY_EXAMPLE),
            ...errors(OF_EXECUTE),
          },
        },
      },
      '/languages': {
        get: {
          operationId: 'languages',
          summary: 'Languages of this server and their state',
          ...behindKey,
          responses: {
            200: jsonResponse('all languages', 'LanguagesReply', LANGUAGES_EXAMPLE),
            ...errors([]),
          },
        },
      },
      '/health': {
        get: {
          operationId: 'health',
          summary: 'State of the server and of its cells',
          responses: {
            200: jsonResponse('ok or degraded', 'HealthReply', HEALTH_EXAMPLE),
            ...toErrorResponses(EVERYWHERE),
          },
        },
      },
      '/metrics': {
        get: {
          operationId: 'metrics',
          summary: 'Counters and timings for Prometheus',
          ...behindKey,
          responses: { 200: textResponse('text/plain', METRICS_EXAMPLE), ...errors([]) },
        },
      },
      '/openapi.json': {
        get: {
          operationId: 'openapi',
          summary: 'This document',
          responses: {
            200: {
              description: 'OpenAPI 3.1',
              content: { 'application/json': { schema: { type: 'object' } } },
            },
            ...toErrorResponses(EVERYWHERE),
          },
        },
      },
      '/docs': {
        get: {
          operationId: 'docs',
          summary: 'This document as a page to read and to try',
          responses: { 200: textResponse('text/html', '<!doctype html>'), ...toErrorResponses(EVERYWHERE) },
        },
      },
      '/': {
        get: {
          operationId: 'start',
          summary: 'Leads to /docs',
          responses: { 302: { description: 'see /docs' }, ...toErrorResponses(EVERYWHERE) },
        },
      },
    },
    components: {
      schemas: COMPONENT_SCHEMAS,
      ...(needsKey ? { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } } : {}),
    },
  };
}

const COMPONENT_SCHEMAS = Object.fromEntries(
  Object.entries(SCHEMAS).map(([name, schema]) => [name, toComponent(schema)]),
);

function toComponent(schema: z.ZodType): Json {
  const { $schema: _dialect, ...component } = z.toJSONSchema(schema, {
    io: 'input',
    // The bounds of exact integers are a fact about JavaScript, not about our fields.
    override: ({ jsonSchema }) => {
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  return component;
}

function reference(name: keyof typeof SCHEMAS): Json {
  return { $ref: `#/components/schemas/${name}` };
}

function jsonResponse(description: string, schema: keyof typeof SCHEMAS, example: unknown): Json {
  return { description, content: { 'application/json': { schema: reference(schema), example } } };
}

function textResponse(type: string, example: string): Json {
  return { description: type, content: { [type]: { schema: { type: 'string' }, example } } };
}

function toErrorResponses(codes: readonly ErrorCode[]): Json {
  const byStatus = Object.groupBy(codes, (code) => ERRORS[code].status);
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, ofStatus]) => [
      status,
      {
        description: ofStatus.join(', '),
        content: {
          'application/json': {
            schema: reference('ErrorReply'),
            examples: Object.fromEntries(ofStatus.map((code) => [code, { value: exampleOf(code) }])),
          },
        },
      },
    ]),
  );
}

function exampleOf(code: ErrorCode): ErrorReply {
  const { hint } = ERRORS[code];
  return { detail: ERROR_DETAILS[code] ?? hint, code, hint };
}
