import * as z from 'zod';
import { ERRORS, type ErrorCode } from '../core/errors.ts';
import { EgressReply, EgressRequest } from '../wire/egress.ts';
import { ErrorReply, ExecuteReply, ExecuteRequest, HealthReply, LanguagesReply } from '../wire/execute.ts';
import { MetricsReply } from '../wire/metrics.ts';
import {
  BackgroundReply,
  ExecReply,
  ExecsReply,
  KillReply,
  OutputReply,
  SessionExecReply,
  SessionExecRequest,
  StdinReply,
  StdinRequest,
} from '../wire/session-exec.ts';
import {
  ApplyPatchReply,
  ApplyPatchRequest,
  ChangesReply,
  FsReply,
  SyncReply,
  SyncRequest,
  UploadReply,
  UploadRequest,
} from '../wire/session-files.ts';
import {
  CreateSessionRequest,
  DestroyReply,
  SessionDetailReply,
  SessionReply,
  SessionsReply,
} from '../wire/sessions.ts';
import { ERROR_DETAILS } from './openapi-examples.ts';

export type Json = Record<string, unknown>;

/** Every body of the API. */
export const SCHEMAS = {
  ExecuteRequest,
  ExecuteReply,
  ErrorReply,
  HealthReply,
  LanguagesReply,
  MetricsReply,
  CreateSessionRequest,
  SessionReply,
  SessionDetailReply,
  SessionsReply,
  DestroyReply,
  SessionExecRequest,
  SessionExecReply,
  BackgroundReply,
  ExecReply,
  ExecsReply,
  OutputReply,
  StdinRequest,
  StdinReply,
  KillReply,
  UploadRequest,
  UploadReply,
  SyncRequest,
  SyncReply,
  ApplyPatchRequest,
  ApplyPatchReply,
  ChangesReply,
  FsReply,
  EgressRequest,
  EgressReply,
};
type SchemaName = keyof typeof SCHEMAS;

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

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** For everybody, key or not. */
  readonly open?: true;
  readonly parameters?: readonly Json[];
  readonly requestBody?: Json;
  /** Replies that are no errors, by status. */
  readonly replies: Json;
  readonly errors?: readonly ErrorCode[];
}

export function operation({ needsKey }: Facts, plan: Operation): Json {
  const { open, replies, errors = [], ...rest } = plan;
  const isLocked = needsKey && open !== true;
  const codes = new Set([...(isLocked ? (['UNAUTHORIZED'] as const) : []), ...errors, ...EVERYWHERE]);
  return {
    ...rest,
    ...(isLocked ? { security: [{ key: [] }] } : {}),
    responses: { ...replies, ...toErrorResponses([...codes]) },
  };
}

export const COMPONENT_SCHEMAS = Object.fromEntries(
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

export function pathParameter(name: string, schema: Json = { type: 'string' }): Json {
  return { name, in: 'path', required: true, schema };
}

export function queryParameter(name: string, description: string, schema: Json): Json {
  return { name, in: 'query', required: false, description, schema };
}

export function jsonBody(schema: SchemaName, examples: Json): Json {
  return { required: true, content: { 'application/json': { schema: reference(schema), examples } } };
}

export function jsonResponse(description: string, schema: SchemaName, example: unknown): Json {
  return { description, content: { 'application/json': { schema: reference(schema), example } } };
}

export function textResponse(type: string, example: string): Json {
  return { description: type, content: { [type]: { schema: { type: 'string' }, example } } };
}

function reference(name: SchemaName): Json {
  return { $ref: `#/components/schemas/${name}` };
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
