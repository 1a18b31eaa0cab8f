import { expect, test } from 'vitest';
import { preferredType } from './accept.ts';

test.each<[string | undefined, string]>([
  [undefined, 'application/json'],
  ['', 'application/json'],
  ['*/*', 'application/json'],
  ['application/json', 'application/json'],
  ['text/event-stream', 'text/event-stream'],
  ['Text/Event-Stream; charset=utf-8', 'text/event-stream'],
  ['text/*', 'text/event-stream'],
  ['text/event-stream, */*', 'text/event-stream'],
  ['*/*, text/event-stream', 'text/event-stream'],
  ['application/json, text/event-stream', 'application/json'],
  ['text/event-stream, application/json', 'text/event-stream'],
  ['text/event-stream;q=0.5, application/json', 'application/json'],
  ['text/event-stream, application/json;q=0.9', 'text/event-stream'],
  ['text/event-stream;q=0', 'application/json'],
  ['text/event-stream;q=0, */*', 'application/json'],
  ['text/event-streams', 'application/json'],
  ['text/html, image/png', 'application/json'],
  ['text/event-stream;q=abc', 'application/json'],
  [',,;;q=,', 'application/json'],
])('[RS-05] a client that accepts %j gets %s', (accept, type) => {
  expect(preferredType(accept, ['application/json', 'text/event-stream'])).toBe(type);
});

test.each<[string, string]>([
  ['application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1', 'text/plain'],
  ['application/json', 'application/json'],
  ['text/html,application/xhtml+xml,*/*;q=0.8', 'text/plain'],
])('[RS-18] for metrics, %s means %s', (accept, type) => {
  expect(preferredType(accept, ['text/plain', 'application/json'])).toBe(type);
});
