import type { ErrorCode } from '../../core/errors.ts';
import {
  OF_BODIES,
  jsonBody,
  jsonResponse,
  operation,
  pathParameter,
  type Facts,
  type Json,
} from '../openapi-parts.ts';
import {
  CREATE_EXAMPLES,
  EGRESS_EXAMPLE,
  EGRESS_REQUEST_EXAMPLES,
  SESSION_DETAIL_EXAMPLE,
  SESSION_EXAMPLE,
} from './openapi-session-examples.ts';

export const SESSION_ID = pathParameter('id');

/** What every request for one session can meet. */
export const OF_SESSION: readonly ErrorCode[] = [
  'INVALID_REQUEST',
  'SESSION_UNKNOWN',
  'SESSION_ENDED',
  'SESSION_UNREACHABLE',
  'RATE_LIMITED',
  'SESSIONS_UNAVAILABLE',
  'CELL_LOST',
];

const OF_CREATE: readonly ErrorCode[] = [
  ...OF_BODIES,
  'LIMIT_TOO_HIGH',
  'LIMIT_TOO_LOW',
  'POLICY_UNENFORCEABLE',
  'TOO_BUSY',
  'QUOTA_EXCEEDED',
  'RATE_LIMITED',
  'SESSIONS_UNAVAILABLE',
  'DRIVER_UNAVAILABLE',
  'IMAGE_UNAVAILABLE',
  'CELL_START_FAILED',
  'CELL_LOST',
  'DISK_FULL',
];

/** The life of sessions, and their way out. */
export function sessionPaths(facts: Facts): Json {
  return {
    '/v1/sessions': {
      post: operation(facts, {
        operationId: 'createSession',
        summary: 'Makes a session: a workspace and a shell in a cell of its own',
        requestBody: jsonBody('CreateSessionRequest', CREATE_EXAMPLES),
        replies: { 201: jsonResponse('it runs', 'SessionReply', SESSION_EXAMPLE) },
        errors: OF_CREATE,
      }),
      get: operation(facts, {
        operationId: 'listSessions',
        summary: 'Sessions of the caller',
        replies: { 200: jsonResponse('all of them', 'SessionsReply', { sessions: [SESSION_EXAMPLE] }) },
        errors: ['INVALID_REQUEST', 'RATE_LIMITED', 'SESSIONS_UNAVAILABLE'],
      }),
    },
    '/v1/sessions/{id}': {
      get: operation(facts, {
        operationId: 'readSession',
        summary: 'One session and what it uses',
        parameters: [SESSION_ID],
        replies: { 200: jsonResponse('the session', 'SessionDetailReply', SESSION_DETAIL_EXAMPLE) },
        errors: OF_SESSION,
      }),
      delete: operation(facts, {
        operationId: 'destroySession',
        summary: 'Ends the session with everything that runs in it',
        parameters: [SESSION_ID],
        replies: { 200: jsonResponse('nothing is left of it', 'DestroyReply', { destroyed: true }) },
        errors: [...OF_SESSION, ...OF_BODIES],
      }),
    },
    ...lifePath(facts, { word: 'keep-alive', summary: 'Begins the time until the session expires anew' }),
    ...lifePath(facts, { word: 'pause', summary: 'Stops every process of the session where it is' }),
    ...lifePath(facts, { word: 'resume', summary: 'Lets a paused session go on' }),
    '/v1/sessions/{id}/egress': {
      get: operation(facts, {
        operationId: 'readEgress',
        summary: 'Hosts that the session can reach, and what was refused',
        parameters: [SESSION_ID],
        replies: { 200: jsonResponse('the list', 'EgressReply', EGRESS_EXAMPLE) },
        errors: OF_SESSION,
      }),
      put: operation(facts, {
        operationId: 'setEgress',
        summary: 'Replaces the list of hosts, also for what is running',
        parameters: [SESSION_ID],
        requestBody: jsonBody('EgressRequest', EGRESS_REQUEST_EXAMPLES),
        replies: { 200: jsonResponse('the new list', 'EgressReply', EGRESS_EXAMPLE) },
        errors: [...OF_SESSION, ...OF_BODIES, 'POLICY_UNENFORCEABLE'],
      }),
    },
  };
}

function lifePath(facts: Facts, { word, summary }: { word: string; summary: string }): Json {
  return {
    [`/v1/sessions/{id}/${word}`]: {
      post: operation(facts, {
        operationId: word.replace('-a', 'A'),
        summary,
        description: 'Needs no body.',
        parameters: [SESSION_ID],
        replies: { 200: jsonResponse('the session', 'SessionReply', SESSION_EXAMPLE) },
        errors: [...OF_SESSION, ...OF_BODIES, 'POLICY_UNENFORCEABLE'],
      }),
    },
  };
}
