import type { ErrorCode } from '../../core/errors.ts';
import { OF_BODIES, jsonBody, jsonResponse, queryParameter, type Operation } from '../openapi-parts.ts';
import {
  BACKGROUND_EXAMPLE,
  EVENTS_EXAMPLE,
  EXEC_EXAMPLES,
  EXEC_REPLY_EXAMPLE,
  EXEC_STATE_EXAMPLE,
  OUTPUT_EXAMPLE,
} from './openapi-session-examples.ts';
import { OF_SESSION } from './openapi-sessions.ts';

const COUNT = { type: 'integer', minimum: 0 };
const FORMAT = queryParameter(
  'format',
  'named: events start, stdout, stderr, cut, exit, interrupted, with the text as data, and stdout_base64 or ' +
    'stderr_base64 for what no event can carry as text; data: unnamed events whose data is {"type": …}, the last one ' +
    'of type done',
  { type: 'string', enum: ['named', 'data'], default: 'named' },
);
const AS_EVENTS = { 'text/event-stream': { schema: { type: 'string' }, example: EVENTS_EXAMPLE } };
const AS_EVENTS_HINT =
  'As server-sent events with Accept: text/event-stream. The id of an event is the number of output bytes up to its ' +
  'end; a client that lost the connection goes on with it as Last-Event-ID at …/execs/{exec_id}/output.';

const OF_STARTING: readonly ErrorCode[] = [
  ...OF_SESSION,
  'SESSION_PAUSED',
  'COMMAND_REFUSED',
  'TOO_BUSY',
  'LIMIT_TOO_HIGH',
  'CELL_START_FAILED',
];
const OF_EXEC: readonly ErrorCode[] = [...OF_SESSION, 'EXEC_UNKNOWN'];

const REPLY = jsonResponse('the command has ended, well or not', 'SessionExecReply', EXEC_REPLY_EXAMPLE);
const OUTPUT = jsonResponse('what is kept of the range', 'OutputReply', OUTPUT_EXAMPLE);
const KILLED = jsonResponse('what was ended', 'KillReply', {
  killed: true,
  exec_ids: [BACKGROUND_EXAMPLE.exec_id],
});

/** Commands of a session. */
export const EXEC_OPERATIONS: readonly Operation[] = [
  {
    at: 'post /v1/sessions/{id}/exec',
    operationId: 'exec',
    summary: 'Runs a command with bash -c in the current folder of the session',
    description: AS_EVENTS_HINT,
    parameters: [FORMAT],
    requestBody: jsonBody('SessionExecRequest', EXEC_EXAMPLES),
    replies: {
      200: { ...REPLY, content: { ...REPLY.content, ...AS_EVENTS } },
      202: jsonResponse('it runs in the background', 'BackgroundReply', BACKGROUND_EXAMPLE),
    },
    errors: [...OF_STARTING, ...OF_BODIES, 'SESSION_BUSY', 'DISK_FULL'],
  },
  {
    at: 'get /v1/sessions/{id}/execs',
    operationId: 'listExecs',
    summary: 'Commands of the session, also those that have ended',
    replies: { 200: jsonResponse('all of them', 'ExecsReply', { execs: [EXEC_STATE_EXAMPLE] }) },
    errors: OF_SESSION,
  },
  {
    at: 'get /v1/sessions/{id}/execs/{exec_id}',
    operationId: 'readExec',
    summary: 'One command and, when it has ended, its result',
    parameters: [queryParameter('wait_s', 'wait that many seconds for its end', { ...COUNT, maximum: 600 })],
    replies: { 200: jsonResponse('as it stands', 'ExecReply', EXEC_STATE_EXAMPLE) },
    errors: OF_EXEC,
  },
  {
    at: 'get /v1/sessions/{id}/execs/{exec_id}/output',
    operationId: 'readOutput',
    summary: 'Output of a command, while it runs and afterwards',
    description: AS_EVENTS_HINT,
    parameters: [
      queryParameter('from', 'the first byte, counted through both streams', { ...COUNT, default: 0 }),
      queryParameter('limit', 'about how many bytes; not for events', {
        type: 'integer',
        minimum: 1,
        maximum: 16_777_216,
        default: 1_048_576,
      }),
      FORMAT,
      { ...queryParameter('last-event-id', 'instead of from, for events', COUNT), in: 'header' },
    ],
    replies: { 200: { ...OUTPUT, content: { ...OUTPUT.content, ...AS_EVENTS } } },
    errors: OF_EXEC,
  },
  {
    at: 'post /v1/sessions/{id}/execs/{exec_id}/stdin',
    operationId: 'writeStdin',
    summary: 'Writes to the standard input of a running command, or ends it',
    requestBody: jsonBody('StdinRequest', {
      line: { summary: 'one line and no more', value: { data: 'yes\n', eof: true } },
    }),
    replies: { 200: jsonResponse('it is on its way', 'StdinReply', { written: 4 }) },
    errors: [...OF_EXEC, ...OF_BODIES, 'EXEC_ENDED', 'SESSION_PAUSED', 'TOO_BUSY'],
  },
  {
    at: 'post /v1/sessions/{id}/execs/{exec_id}/kill',
    operationId: 'killExec',
    summary: 'Ends one command and everything it started',
    description: 'Needs no body.',
    replies: { 200: KILLED },
    errors: [...OF_EXEC, ...OF_BODIES, 'SESSION_PAUSED'],
  },
  {
    at: 'post /v1/sessions/{id}/kill',
    operationId: 'kill',
    summary: 'Ends the running command and everything it started; commands in the background go on',
    description: 'Needs no body.',
    replies: { 200: KILLED },
    errors: [...OF_SESSION, ...OF_BODIES, 'SESSION_PAUSED'],
  },
  {
    at: 'get /v1/sessions/{id}/terminal',
    operationId: 'terminal',
    summary: 'A terminal over a WebSocket; it outlives the connection',
    description:
      'Binary messages are bytes, both ways. Text messages are JSON: from the client {"type":"resize","rows":…,"cols":…}, ' +
      '{"type":"eof"} or {"type":"kill"}; from the server {"type":"ready","exec_id":…,"from":…} first, ' +
      '{"type":"cut","from":…,"to":…}, and {"type":"exit","result":…} or {"type":"interrupted",…} last. Where no ' +
      'Authorization header can be sent, offer the subprotocols hotcell.terminal and hotcell.bearer.<key in base64url>.',
    parameters: [
      ...['rows', 'cols'].map((name) =>
        queryParameter(name, 'size of the terminal', { type: 'integer', minimum: 1, maximum: 1000 }),
      ),
      queryParameter('command', 'instead of a login shell', { type: 'string' }),
      queryParameter('exec_id', 'one more viewer for a terminal that is there', { type: 'string' }),
      queryParameter('from', 'first byte to see; the last 1 MiB unless given', COUNT),
    ],
    replies: { 101: { description: 'a WebSocket' } },
    errors: [...OF_STARTING, 'EXEC_UNKNOWN'],
  },
];
