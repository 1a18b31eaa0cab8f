import type { FastifyInstance } from 'fastify';
import * as z from 'zod';
import type { Session } from '../../sessions/api.ts';
import { CreateSessionRequest, type DestroyReply, type SessionsReply } from '../../wire/sessions.ts';
import { makeQueryParser } from '../request-query.ts';
import { makeRequestParser } from '../request-problems.ts';
import { toSessionDetailReply, toSessionReply, toSessionRequest } from './render-session.ts';
import type { SessionDoor } from './session-door.ts';

const parseCreate = makeRequestParser(CreateSessionRequest);
const parseNothing = makeRequestParser(z.strictObject({}));
export const requireNoQuery = makeQueryParser(z.strictObject({}));

/** For posts that may come without a body: an empty one, or an empty object. */
export function requireNoFields(body: unknown): void {
  parseNothing(body ?? {});
}

/** `/v1/sessions`: makes sessions and lists those of the caller. */
export function addCollectionRoutes(app: FastifyInstance, door: SessionDoor): void {
  app.post('/v1/sessions', async (request, reply) => {
    requireNoQuery(request);
    // First: a server without sessions says so, whatever is asked of it.
    const { sessions } = door;
    const asked = toSessionRequest(parseCreate(request.body));
    const created = await sessions.create(door.callerOf(request), asked);
    return reply.code(201).send(toSessionReply(created));
  });
  app.get('/v1/sessions', (request): SessionsReply => {
    requireNoQuery(request);
    return { sessions: door.sessions.list(door.callerOf(request)).map(toSessionReply) };
  });
}

/** What keeps one session alive, stops it for a while, or ends it. */
export function addLifeRoutes(app: FastifyInstance, door: SessionDoor): void {
  app.get('/v1/sessions/:id', (request) => {
    requireNoQuery(request);
    return door.find(request).detail().then(toSessionDetailReply);
  });
  app.delete('/v1/sessions/:id', (request) => {
    requireNoQuery(request);
    requireNoFields(request.body);
    return destroy(door.find(request));
  });
  app.post('/v1/sessions/:id/keep-alive', (request) => {
    requireNoQuery(request);
    requireNoFields(request.body);
    return toSessionReply(door.find(request).keepAlive());
  });
  app.post('/v1/sessions/:id/pause', (request) => {
    requireNoQuery(request);
    requireNoFields(request.body);
    return door.find(request).pause().then(toSessionReply);
  });
  app.post('/v1/sessions/:id/resume', (request) => {
    requireNoQuery(request);
    requireNoFields(request.body);
    return door.find(request).resume().then(toSessionReply);
  });
}

async function destroy(session: Session): Promise<z.infer<typeof DestroyReply>> {
  await session.destroy();
  return { destroyed: true };
}
