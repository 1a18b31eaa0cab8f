import type { ErrorCode } from '../../core/errors.ts';
import { OF_BODIES, jsonBody, jsonResponse, type Operation } from '../openapi-parts.ts';
import {
  CREATE_EXAMPLES,
  EGRESS_EXAMPLE,
  EGRESS_REQUEST_EXAMPLES,
  SESSION_DETAIL_EXAMPLE,
  SESSION_EXAMPLE,
} from './openapi-session-examples.ts';

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
export const SESSION_OPERATIONS: readonly Operation[] = [
  {
    at: 'post /v1/sessions',
    operationId: 'createSession',
    summary: 'Makes a session: a workspace and a shell in a cell of its own',
    requestBody: jsonBody('CreateSessionRequest', CREATE_EXAMPLES),
    replies: { 201: jsonResponse('it runs', 'SessionReply', SESSION_EXAMPLE) },
    errors: OF_CREATE,
  },
  {
    at: 'get /v1/sessions',
    operationId: 'listSessions',
    summary: 'Sessions of the caller',
    replies: { 200: jsonResponse('all of them', 'SessionsReply', { sessions: [SESSION_EXAMPLE] }) },
    errors: ['INVALID_REQUEST', 'RATE_LIMITED', 'SESSIONS_UNAVAILABLE'],
  },
  {
    at: 'get /v1/sessions/{id}',
    operationId: 'readSession',
    summary: 'One session and what it uses',
    replies: { 200: jsonResponse('the session', 'SessionDetailReply', SESSION_DETAIL_EXAMPLE) },
    errors: OF_SESSION,
  },
  {
    at: 'delete /v1/sessions/{id}',
    operationId: 'destroySession',
    summary: 'Ends the session with everything that runs in it',
    replies: { 200: jsonResponse('nothing is left of it', 'DestroyReply', { destroyed: true }) },
    errors: [...OF_SESSION, ...OF_BODIES],
  },
  lifeOperation({ word: 'keep-alive', summary: 'Begins the time until the session expires anew' }),
  lifeOperation({ word: 'pause', summary: 'Stops every process of the session where it is' }),
  lifeOperation({ word: 'resume', summary: 'Lets a paused session go on' }),
  {
    at: 'get /v1/sessions/{id}/egress',
    operationId: 'readEgress',
    summary: 'Hosts that the session can reach, and what was refused',
    replies: { 200: jsonResponse('the list', 'EgressReply', EGRESS_EXAMPLE) },
    errors: OF_SESSION,
  },
  {
    at: 'put /v1/sessions/{id}/egress',
    operationId: 'setEgress',
    summary: 'Replaces the list of hosts, also for what is running',
    requestBody: jsonBody('EgressRequest', EGRESS_REQUEST_EXAMPLES),
    replies: { 200: jsonResponse('the new list', 'EgressReply', EGRESS_EXAMPLE) },
    errors: [...OF_SESSION, ...OF_BODIES, 'POLICY_UNENFORCEABLE'],
  },
];

function lifeOperation({ word, summary }: { word: string; summary: string }): Operation {
  return {
    at: `post /v1/sessions/{id}/${word}`,
    operationId: word.replace('-a', 'A'),
    summary,
    description: 'Needs no body.',
    replies: { 200: jsonResponse('the session', 'SessionReply', SESSION_EXAMPLE) },
    errors: [...OF_SESSION, ...OF_BODIES, 'POLICY_UNENFORCEABLE'],
  };
}
