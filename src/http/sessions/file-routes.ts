import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import * as z from 'zod';
import { messageOf } from '../../core/errors.ts';
import {
  ApplyPatchRequest,
  SyncRequest,
  UploadRequest,
  type ApplyPatchReply,
} from '../../wire/session-files.ts';
import { PlainText } from '../../wire/text.ts';
import { makeRequestParser } from '../request-problems.ts';
import { makeQueryParser } from '../request-query.ts';
import { requireNoQuery } from './life-routes.ts';
import type { SessionDoor } from './session-door.ts';

const parseUpload = makeRequestParser(UploadRequest);
const parseSync = makeRequestParser(SyncRequest);
const parsePatch = makeRequestParser(ApplyPatchRequest);
const parsePath = makeQueryParser(z.strictObject({ path: PlainText.min(1).max(4096).default('.') }));
const parseSince = makeQueryParser(z.strictObject({ since: PlainText.min(1).max(256).optional() }));

/** The workspace of a session: files in, files out, what has changed. */
export function addFileRoutes(app: FastifyInstance, door: SessionDoor): void {
  const large = { bodyLimit: door.bodyLimitBytes };
  app.post('/v1/sessions/:id/upload', large, (request) => {
    requireNoQuery(request);
    const { files } = parseUpload(request.body);
    const written = door.find(request).upload(files);
    return written.then(() => ({ synced: files.length }));
  });
  app.post('/v1/sessions/:id/sync', large, (request) => {
    requireNoQuery(request);
    return door.find(request).sync(parseSync(request.body));
  });
  app.post('/v1/sessions/:id/apply_patch', large, (request) => {
    requireNoQuery(request);
    const patched = door.find(request).applyPatch(parsePatch(request.body).diff);
    return patched.then((results): ApplyPatchReply => ({ success: true, results }));
  });
  app.get('/v1/sessions/:id/changes', (request) => door.find(request).changes(parseSince(request).since));
  app.get('/v1/sessions/:id/fs', (request) => door.find(request).read(parsePath(request).path));
  // Without HEAD, which would read the whole workspace to throw it away.
  app.get('/v1/sessions/:id/archive', { exposeHeadRoute: false }, async (request, reply) => {
    requireNoQuery(request);
    const session = door.find(request);
    const archive = Readable.from(await session.archive(), { objectMode: false });
    // The client sees a cut connection; why it was cut stands here.
    archive.once('error', (error) => door.log.error({ error: messageOf(error) }, 'archive cut'));
    const name = `${session.describe().project}.tar`;
    return reply
      .type('application/x-tar')
      .header('content-disposition', `attachment; filename="${name}"`)
      .send(archive);
  });
}
