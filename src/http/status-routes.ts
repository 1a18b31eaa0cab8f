import type { FastifyInstance } from 'fastify';
import { HotcellError } from '../core/errors.ts';
import type { LanguageStatus } from '../runs/run.ts';
import type { LanguagesReply } from '../wire/execute.ts';
import { preferredType } from './accept.ts';
import type { HttpDependencies } from './dependencies.ts';

const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/** What the server is and how it fares: languages, health, metrics. */
export function addStatusRoutes(app: FastifyInstance, deps: HttpDependencies): void {
  app.get('/languages', () => toLanguagesReply(deps.runs.languages()));
  app.get('/health', () => deps.health());
  app.get('/livez', () => ({ status: 'ok' }));
  app.get('/readyz', () => {
    const { problem } = deps.health();
    if (problem !== null) throw new HotcellError('DRIVER_UNAVAILABLE', problem);
    return { status: 'ok' };
  });
  app.get('/metrics', async (request, reply) => {
    const type = preferredType(request.headers.accept, ['text/plain', 'application/json']);
    if (type === 'application/json') return deps.metricsView();
    const text = await deps.metrics();
    return reply.type(PROMETHEUS_TEXT).send(text);
  });
  app.get('/metrics.json', () => deps.metricsView());
}

function toLanguagesReply(languages: readonly LanguageStatus[]): LanguagesReply {
  return {
    languages: languages.map(({ name, extension, imageName, available, problem }) => ({
      name,
      extension,
      image_name: imageName,
      route: `/execute/${name}`,
      available,
      problem: problem ?? null,
    })),
  };
}
