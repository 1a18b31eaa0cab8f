import * as z from 'zod';
import { ERRORS, type ErrorCode } from '../core/errors.ts';
import * as egress from '../wire/egress.ts';
import * as execute from '../wire/execute.ts';
import * as metrics from '../wire/metrics.ts';
import * as sessionExec from '../wire/session-exec.ts';
import * as sessionFiles from '../wire/session-files.ts';
import * as sessions from '../wire/sessions.ts';
import { OPEN_WITHOUT_KEY } from './guard.ts';
import { ERROR_DETAILS } from './openapi-examples.ts';

export type Json = Record<string, unknown>;

const WIRE = { ...execute, ...metrics, ...sessions, ...sessionExec, ...sessionFiles, ...egress };
type SchemaName = Extract<keyof typeof WIRE, `${string}${'Request' | 'Reply'}`>;

/** Every body of the API: what is called a request or a reply there. */
export const SCHEMAS: ReadonlyMap<string, z.ZodType> = new Map(
  Object.entries(WIRE).flatMap(([name, schema]) =>
    schema instanceof z.ZodType && /(?:Request|Reply)$/.test(name) ? [[name, schema] as const] : [],
  ),
);

const EVERYWHERE: readonly ErrorCode[] = [
  'BAD_REQUEST',
  'REQUEST_TIMEOUT',
  'HEADERS_TOO_LARGE',
  'HOST_REFUSED',
  'ORIGIN_REFUSED',
  'SHUTTING_DOWN',
  'INTERNAL',
];
/** What a body can be refused for before anybody looks at its meaning. */
export const OF_BODIES: readonly ErrorCode[] = [
  'INVALID_JSON',
  'BODY_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'INVALID_REQUEST',
];

export interface Facts {
  readonly version: string;
  readonly needsKey: boolean;
  readonly languages: readonly string[];
}

export interface Operation {
  /** The names in braces become parameters by themselves. */
  readonly at: `${'get' | 'post' | 'put' | 'delete'} /${string}`;
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Json[];
  readonly requestBody?: Json;
  /** Replies that are no errors, by status. */
  readonly replies: Json;
  readonly errors?: readonly ErrorCode[];
}

export function toPaths(facts: Facts, operations: readonly Operation[]): Json {
  const paths: Record<string, Json> = {};
  for (const { at, ...plan } of operations) {
    const [method = '', path = ''] = at.split(' ', 2);
    paths[path] = { ...paths[path], [method]: toOperation(facts, { path, ...plan }) };
  }
  return paths;
}

function toOperation(facts: Facts, plan: Omit<Operation, 'at'> & { path: string }): Json {
  const { path, parameters = [], requestBody, replies, errors = [], ...rest } = plan;
  const isLocked = facts.needsKey && !OPEN_WITHOUT_KEY.has(path);
  const codes = new Set([...(isLocked ? (['UNAUTHORIZED'] as const) : []), ...errors, ...EVERYWHERE]);
  const allParameters = [...pathParameters(path, facts), ...parameters];
  return {
    ...rest,
    ...(allParameters.length === 0 ? {} : { parameters: allParameters }),
    ...(requestBody === undefined ? {} : { requestBody }),
    ...(isLocked ? { security: [{ key: [] }] } : {}),
    responses: { ...replies, ...toErrorResponses([...codes]) },
  };
}

function pathParameters(path: string, { languages }: Facts): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    const known = name === 'language' && languages.length > 0 ? { enum: languages } : {};
    return { name, in: 'path', required: true, schema: { type: 'string', ...known } };
  });
}

export const COMPONENT_SCHEMAS = Object.fromEntries(
  [...SCHEMAS].map(([name, schema]) => [name, toComponent(schema)]),
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

export function queryParameter(name: string, description: string, schema: Json): Json {
  return { name, in: 'query', required: false, description, schema };
}

export function jsonBody(schema: SchemaName, examples: Json): Json {
  return { required: true, content: { 'application/json': { schema: reference(schema), examples } } };
}

export function jsonResponse(description: string, schema: SchemaName, example: unknown) {
  return { description, content: { 'application/json': { schema: reference(schema), example } } };
}

export function textResponse(type: string, example: string) {
  return { description: type, content: { [type]: { schema: { type: 'string' }, example } } };
}

function reference(name: SchemaName): Json {
  return { $ref: `#/components/schemas/${name}` };
}

function toErrorResponses(codes: readonly ErrorCode[]): Json {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
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

function exampleOf(code: ErrorCode): execute.ErrorReply {
  const { hint } = ERRORS[code];
  return { detail: ERROR_DETAILS[code] ?? hint, code, hint };
}
