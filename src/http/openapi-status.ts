import {
  HEALTH_EXAMPLE,
  LANGUAGES_EXAMPLE,
  METRICS_EXAMPLE,
  METRICS_VIEW_EXAMPLE,
} from './openapi-examples.ts';
import { jsonResponse, textResponse, type Operation } from './openapi-parts.ts';

const ALIVE = {
  description: 'it is',
  content: {
    'application/json': {
      schema: { type: 'object', properties: { status: { type: 'string', enum: ['ok'] } } },
      example: { status: 'ok' },
    },
  },
};

const VIEW = jsonResponse('as JSON', 'MetricsReply', METRICS_VIEW_EXAMPLE);
const TEXT = textResponse('text/plain', METRICS_EXAMPLE);

/** What the server is and how it fares. */
export const STATUS_OPERATIONS: readonly Operation[] = [
  {
    at: 'get /languages',
    operationId: 'languages',
    summary: 'Languages of this server and their state',
    replies: { 200: jsonResponse('all languages', 'LanguagesReply', LANGUAGES_EXAMPLE) },
  },
  {
    at: 'get /health',
    operationId: 'health',
    summary: 'State of the server and of its cells',
    replies: { 200: jsonResponse('ok or degraded', 'HealthReply', HEALTH_EXAMPLE) },
  },
  {
    at: 'get /livez',
    operationId: 'livez',
    summary: 'Whether the server is alive',
    replies: { 200: ALIVE },
  },
  {
    at: 'get /readyz',
    operationId: 'readyz',
    summary: 'Whether the server can take work',
    replies: { 200: ALIVE },
    errors: ['DRIVER_UNAVAILABLE'],
  },
  {
    at: 'get /metrics',
    operationId: 'metrics',
    summary: 'Counters and timings for Prometheus, or as JSON where Accept asks for it',
    replies: { 200: { ...TEXT, content: { ...TEXT.content, ...VIEW.content } } },
  },
  {
    at: 'get /metrics.json',
    operationId: 'metricsView',
    summary: 'Counters as JSON',
    replies: { 200: VIEW },
  },
  {
    at: 'get /openapi.json',
    operationId: 'openapi',
    summary: 'This document',
    replies: {
      200: {
        description: 'OpenAPI 3.1',
        content: { 'application/json': { schema: { type: 'object' } } },
      },
    },
  },
  {
    at: 'get /docs',
    operationId: 'docs',
    summary: 'This document as a page to read and to try',
    replies: { 200: textResponse('text/html', '<!doctype html>') },
  },
  {
    at: 'get /',
    operationId: 'start',
    summary: 'Leads to /docs',
    replies: { 302: { description: 'see /docs' } },
  },
];
