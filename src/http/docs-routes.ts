import type { FastifyInstance } from 'fastify';
import type { HttpDependencies } from './dependencies.ts';
import { loadDocsPage } from './docs-page.ts';
import { makeOpenApi } from './openapi.ts';

/** The description of the API, for programs and for people. */
export function addDocsRoutes(app: FastifyInstance, { runs, options, tenants }: HttpDependencies): void {
  const page = loadDocsPage();
  app.get('/openapi.json', () =>
    makeOpenApi({
      version: options.version,
      needsKey: tenants.required,
      languages: runs.languages().map((language) => language.name),
    }),
  );
  app.get('/docs', (_request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', page.contentSecurityPolicy)
      .header('referrer-policy', 'no-referrer')
      .send(page.html),
  );
  app.get('/', (_request, reply) => reply.redirect('/docs'));
}
