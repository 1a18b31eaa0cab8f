import {
  HEALTH_EXAMPLE,
  LANGUAGES_EXAMPLE,
  METRICS_EXAMPLE,
  METRICS_VIEW_EXAMPLE,
} from './openapi-examples.ts';
import { jsonResponse, operation, textResponse, type Facts, type Json } from './openapi-parts.ts';

const ALIVE = {
  description: 'it is',
  content: {
    'application/json': {
      schema: { type: 'object', properties: { status: { type: 'string', enum: ['ok'] } } },
      example: { status: 'ok' },
    },
  },
};

/** What the server is and how it fares. */
export function statusPaths(facts: Facts): Json {
  const view = jsonResponse('as JSON', 'MetricsReply', METRICS_VIEW_EXAMPLE);
  const text = textResponse('text/plain', METRICS_EXAMPLE);
  return {
    '/languages': {
      get: operation(facts, {
        operationId: 'languages',
        summary: 'Languages of this server and their state',
        replies: { 200: jsonResponse('all languages', 'LanguagesReply', LANGUAGES_EXAMPLE) },
      }),
    },
    '/health': {
      get: operation(facts, {
        operationId: 'health',
        summary: 'State of the server and of its cells',
        open: true,
        replies: { 200: jsonResponse('ok or degraded', 'HealthReply', HEALTH_EXAMPLE) },
      }),
    },
    '/livez': {
      get: operation(facts, {
        operationId: 'livez',
        summary: 'Whether the server is alive',
        open: true,
        replies: { 200: ALIVE },
      }),
    },
    '/readyz': {
      get: operation(facts, {
        operationId: 'readyz',
        summary: 'Whether the server can take work',
        open: true,
        replies: { 200: ALIVE },
        errors: ['DRIVER_UNAVAILABLE'],
      }),
    },
    '/metrics': {
      get: operation(facts, {
        operationId: 'metrics',
        summary: 'Counters and timings for Prometheus, or as JSON where Accept asks for it',
        replies: {
          200: { ...text, content: { ...contentOf(text), ...contentOf(view) } },
        },
      }),
    },
    '/metrics.json': {
      get: operation(facts, {
        operationId: 'metricsView',
        summary: 'Counters as JSON',
        replies: { 200: view },
      }),
    },
    '/openapi.json': {
      get: operation(facts, {
        operationId: 'openapi',
        summary: 'This document',
        open: true,
        replies: {
          200: {
            description: 'OpenAPI 3.1',
            content: { 'application/json': { schema: { type: 'object' } } },
          },
        },
      }),
    },
    '/docs': {
      get: operation(facts, {
        operationId: 'docs',
        summary: 'This document as a page to read and to try',
        open: true,
        replies: { 200: textResponse('text/html', '<!doctype html>') },
      }),
    },
    '/': {
      get: operation(facts, {
        operationId: 'start',
        summary: 'Leads to /docs',
        open: true,
        replies: { 302: { description: 'see /docs' } },
      }),
    },
  };
}

function contentOf({ content }: Json): Json {
  return typeof content === 'object' && content !== null ? { ...content } : {};
}
