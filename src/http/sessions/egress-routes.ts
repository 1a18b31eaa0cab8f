import type { FastifyInstance } from 'fastify';
import { EgressRequest } from '../../wire/egress.ts';
import { makeRequestParser } from '../request-problems.ts';
import { requireNoQuery } from './life-routes.ts';
import { toEgressReply } from './render-session.ts';
import type { SessionDoor } from './session-door.ts';

const parseBody = makeRequestParser(EgressRequest);

/** Where a session may connect to, and what was refused. */
export function addEgressRoutes(app: FastifyInstance, door: SessionDoor): void {
  app.get('/v1/sessions/:id/egress', (request) => {
    requireNoQuery(request);
    return toEgressReply(door.find(request).egress());
  });
  app.put('/v1/sessions/:id/egress', (request) => {
    requireNoQuery(request);
    return door.find(request).setEgress(parseBody(request.body).allow).then(toEgressReply);
  });
}
