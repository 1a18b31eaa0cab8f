import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import { abortable } from '../../core/abortable.ts';
import { HotcellError } from '../../core/errors.ts';
import type { SessionExec } from '../../sessions/api.ts';
import {
  SessionExecRequest,
  StdinRequest,
  type BackgroundReply,
  type ExecsReply,
  type KillReply,
  type StdinReply,
} from '../../wire/session-exec.ts';
import { preferredType } from '../accept.ts';
import { makeRequestParser } from '../request-problems.ts';
import { makeQueryParser, numberText } from '../request-query.ts';
import { DATA_FRAMES, NAMED_FRAMES } from './event-frames.ts';
import { toEventStream } from './event-stream.ts';
import { requireNoFields, requireNoQuery } from './life-routes.ts';
import {
  toCommandRequest,
  toExecReply,
  toKillReply,
  toOutputReply,
  toSessionExecReply,
} from './render-exec.ts';
import type { SessionDoor } from './session-door.ts';

const MiB = 1024 * 1024;
const LONGEST_WAIT_S = 600;

const Format = z.enum(['named', 'data']).default('named');
const Place = numberText({ max: Number.MAX_SAFE_INTEGER });
const parseExec = makeRequestParser(SessionExecRequest);
const parseStdin = makeRequestParser(StdinRequest);
const parseFormat = makeQueryParser(z.strictObject({ format: Format }));
const parseWait = makeQueryParser(z.strictObject({ wait_s: numberText({ max: LONGEST_WAIT_S }).optional() }));
const parseOutput = makeQueryParser(
  z.strictObject({
    from: Place.optional(),
    limit: numberText({ min: 1, max: 16 * MiB }).default(MiB),
    format: Format,
  }),
);
const parseLastEventId = makeRequestParser(z.object({ 'last-event-id': Place.optional() }));

/** Commands: begin, watch, feed and end them. */
export function addExecRoutes(app: FastifyInstance, door: SessionDoor): void {
  app.post('/v1/sessions/:id/exec', { bodyLimit: door.bodyLimitBytes }, (request, reply) =>
    beginExec(door, request, reply),
  );
  app.get('/v1/sessions/:id/execs', (request): ExecsReply => {
    requireNoQuery(request);
    return { execs: door.find(request).execs().map(toExecReply) };
  });
  app.get('/v1/sessions/:id/execs/:exec_id', async (request, reply) => {
    const { wait_s: waitSeconds = 0 } = parseWait(request);
    const exec = door.findExec(request);
    if (waitSeconds > 0) {
      await untilEnded(exec, { waitMs: waitSeconds * 1000, signal: door.streams.signalOf(reply.raw) });
    }
    return toExecReply(exec.describe());
  });
  // Without HEAD, which would follow the output to throw it away.
  app.get('/v1/sessions/:id/execs/:exec_id/output', { exposeHeadRoute: false }, (request, reply) =>
    readOutput(door, request, reply),
  );
  app.post(
    '/v1/sessions/:id/execs/:exec_id/stdin',
    { bodyLimit: door.bodyLimitBytes },
    (request): StdinReply => {
      requireNoQuery(request);
      const exec = door.findExec(request);
      const { data, encoding, eof } = parseStdin(request.body);
      const bytes = Buffer.from(data, encoding);
      if (bytes.length > 0) exec.write(bytes);
      if (eof) exec.closeStdin();
      return { written: bytes.length };
    },
  );
  app.post('/v1/sessions/:id/execs/:exec_id/kill', (request) => {
    requireNoQuery(request);
    requireNoFields(request.body);
    return kill(door.findExec(request));
  });
  app.post('/v1/sessions/:id/kill', (request) => {
    requireNoQuery(request);
    requireNoFields(request.body);
    return door.find(request).kill().then(toKillReply);
  });
}

async function beginExec(door: SessionDoor, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const { format } = parseFormat(request);
  const body = parseExec(request.body);
  refuseReplay(request);
  const signal = door.streams.signalOf(reply.raw);
  const exec = await door.find(request).exec(toCommandRequest(body), signal);
  if (body.stream || wantsEvents(request)) return sendEvents(door, reply, { exec, from: 0, format, signal });
  if (body.background) {
    return reply.code(202).send({ exec_id: exec.id, state: 'running' } satisfies BackgroundReply);
  }
  return toSessionExecReply(await abortable(exec.report(), signal, () => toWaitError(exec, signal)));
}

async function kill(exec: SessionExec): Promise<KillReply> {
  const killed = exec.describe().state !== 'ended';
  if (killed) await exec.kill();
  return toKillReply(killed ? [exec.id] : []);
}

/** Clients that reconnect by sending the same request again would run the command twice. */
function refuseReplay({ headers }: FastifyRequest): void {
  if (headers['last-event-id'] === undefined) return;
  throw new HotcellError('INVALID_REQUEST', 'last-event-id: a new command has no earlier events', {
    field: 'last-event-id',
    hint: 'GET …/execs/{exec_id}/output goes on with a command that runs already.',
  });
}

async function readOutput(door: SessionDoor, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const { from = 0, limit, format } = parseOutput(request);
  const exec = door.findExec(request);
  if (!wantsEvents(request)) return toOutputReply(await exec.read(from, limit));
  // The header comes from a client that reconnects to the same address, so it knows better than the query.
  const lastEventId = parseLastEventId(request.headers)['last-event-id'];
  const signal = door.streams.signalOf(reply.raw);
  return sendEvents(door, reply, { exec, from: lastEventId ?? from, format, signal });
}

interface Events {
  readonly exec: SessionExec;
  readonly from: number;
  readonly format: z.output<typeof Format>;
  readonly signal: AbortSignal;
}

function sendEvents(door: SessionDoor, reply: FastifyReply, { format, exec, from, signal }: Events): unknown {
  const { heartbeatMs, log } = door;
  const frames = format === 'data' ? DATA_FRAMES : NAMED_FRAMES;
  const stream = toEventStream(exec, { from, frames, signal, heartbeatMs, log });
  return (
    reply
      .type('text/event-stream; charset=utf-8')
      .header('x-hotcell-exec-id', exec.id)
      // Some proxies keep a reply back until it is complete.
      .header('x-accel-buffering', 'no')
      .send(Readable.from(stream, { objectMode: false }))
  );
}

function wantsEvents({ headers }: FastifyRequest): boolean {
  return preferredType(headers.accept, ['application/json', 'text/event-stream']) === 'text/event-stream';
}

/** The command goes on when its caller or this server does not; only the waiting ends. */
function toWaitError(exec: SessionExec, signal: AbortSignal): HotcellError {
  const code = signal.reason instanceof HotcellError ? signal.reason.code : 'CANCELLED';
  return new HotcellError(code, `nobody waits any more; the command goes on as ${exec.id}`, {
    hint: `GET …/execs/${exec.id} tells how it ended, GET …/execs/${exec.id}/output has its output.`,
  });
}

async function untilEnded(
  exec: SessionExec,
  { waitMs, signal }: { waitMs: number; signal: AbortSignal },
): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, waitMs);
  if (signal.aborted) over.resolve();
  else signal.addEventListener('abort', () => over.resolve(), { once: true });
  await Promise.race([exec.result, over.promise]);
  clearTimeout(timer);
}
