import type { FastifyInstance } from 'fastify';
import { addEgressRoutes } from './egress-routes.ts';
import { addExecRoutes } from './exec-routes.ts';
import { addFileRoutes } from './file-routes.ts';
import { addCollectionRoutes, addLifeRoutes } from './life-routes.ts';
import type { SessionDoor } from './session-door.ts';
import { addTerminalRoute } from './terminal-route.ts';

/** Everything below `/v1/sessions`. */
export function addSessionRoutes(app: FastifyInstance, door: SessionDoor): void {
  addCollectionRoutes(app, door);
  void app.register(async (ofOneSession) => {
    // Before the body is read: whoever has no session has nothing to upload.
    ofOneSession.addHook('onRequest', (request, reply, done) => {
      door.find(request);
      door.bodies.take(request, reply);
      done();
    });
    addLifeRoutes(ofOneSession, door);
    addExecRoutes(ofOneSession, door);
    addFileRoutes(ofOneSession, door);
    addEgressRoutes(ofOneSession, door);
    await ofOneSession.register((terminal) => addTerminalRoute(terminal, door));
  });
}
