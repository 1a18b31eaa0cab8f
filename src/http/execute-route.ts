import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Runs } from '../runs/run.ts';
import { ExecuteRequest } from '../wire/execute.ts';
import { toExecuteReply, toRunRequest } from './execute-reply.ts';
import { makeRequestParser } from './request-problems.ts';

const parseBody = makeRequestParser(ExecuteRequest);

/** `POST /execute/<language>`, for every language that there is at the time of the request. */
export function addExecuteRoute(app: FastifyInstance, runs: Runs): void {
  app.post<{ Params: { language: string } }>(
    '/execute/:language',
    {
      // Before the body is read: an unknown language is the first thing to say, whatever the body is.
      onRequest: (request, _reply, done) => {
        runs.requireLanguage(request.params.language);
        done();
      },
    },
    async (request, reply) => {
      const job = toRunRequest(request.params.language, parseBody(request.body));
      return toExecuteReply(await runs.run(job, { signal: abortedByDisconnect(reply.raw) }));
    },
  );
}

/** A run for which nobody waits any more only takes the place of others. */
function abortedByDisconnect(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}
