import type { FastifyInstance } from 'fastify';
import type { LanguageStatus } from '../runs/run.ts';
import type { LanguagesReply } from '../wire/execute.ts';
import type { HttpDependencies } from './dependencies.ts';

const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/** What the server is and how it fares: languages, health, metrics. */
export function addStatusRoutes(app: FastifyInstance, deps: HttpDependencies): void {
  app.get('/languages', () => toLanguagesReply(deps.runs.languages()));
  app.get('/health', () => deps.health());
  app.get('/metrics', async (_request, reply) => {
    const text = await deps.metrics();
    return reply.type(PROMETHEUS_TEXT).send(text);
  });
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
