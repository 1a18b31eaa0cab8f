import { expect, test } from 'vitest';
import type { McpHandler } from './dependencies.ts';
import { ScriptedServer } from './scripted-server.double.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

function aHandler(): McpHandler & { readonly seen: { tenant: string; body: unknown }[] } {
  const seen: { tenant: string; body: unknown }[] = [];
  return {
    seen,
    answer: ({ response, body, owner }) => {
      seen.push({ tenant: owner.tenant, body });
      response.writeHead(200, { 'content-type': 'text/plain' }).end('served');
      return Promise.resolve();
    },
  };
}

test('[MC-01] /mcp has the headers of every answer, the parsed body and the tenant', async () => {
  const mcp = aHandler();
  await using server = await ScriptedServer.start({ mcp, apiKey: 'key-12345' });
  const { status, headers, text } = await server.ask('/mcp', {
    method: 'POST',
    headers: { ...JSON_TYPE, authorization: 'Bearer key-12345', origin: 'http://localhost:3000' },
    body: '{"jsonrpc":"2.0"}',
  });
  expect([status, text]).toEqual([200, 'served']);
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'access-control-allow-origin': 'http://localhost:3000',
  });
  expect(mcp.seen).toEqual([{ tenant: 'default', body: { jsonrpc: '2.0' } }]);
});

test.each([
  [401, { ...JSON_TYPE }, '{}'],
  [401, { ...JSON_TYPE, authorization: 'Bearer wrong-key' }, '{}'],
  [403, { ...JSON_TYPE, authorization: 'Bearer key-12345', origin: 'http://evil.test' }, '{}'],
  [403, { ...JSON_TYPE, authorization: 'Bearer key-12345', host: 'evil.test' }, '{}'],
  [415, { 'content-type': 'text/plain', authorization: 'Bearer key-12345' }, '{}'],
  [400, { ...JSON_TYPE, authorization: 'Bearer key-12345' }, 'not json'],
  [400, { ...JSON_TYPE, authorization: 'Bearer key-12345' }, '[]'],
  [400, { ...JSON_TYPE, authorization: 'Bearer key-12345' }, '{"__proto__":{}}'],
  [413, { ...JSON_TYPE, authorization: 'Bearer key-12345' }, JSON.stringify({ a: 'x'.repeat(2 ** 20) })],
])('[MC-01] the guard answers %i, and MCP sees nothing', async (expected, headers, body) => {
  const mcp = aHandler();
  await using server = await ScriptedServer.start({ mcp, apiKey: 'key-12345' });
  const answer = await server.ask('/mcp', { method: 'POST', headers, body });
  expect(answer.status).toBe(expected);
  expect(answer.json()).toHaveProperty('detail');
  expect(mcp.seen).toEqual([]);
});

test('[MC-01] where MCP is not served, it says so', async () => {
  await using server = await ScriptedServer.start();
  const { status, text } = await server.ask('/mcp', { method: 'POST', headers: JSON_TYPE, body: '{}' });
  expect([status, text]).toEqual([404, expect.stringContaining('MCP is not served here')]);
});

test('[MC-01] other methods are refused with those that there are', async () => {
  await using server = await ScriptedServer.start({ mcp: aHandler() });
  const { status, headers } = await server.ask('/mcp', { method: 'PUT', headers: JSON_TYPE, body: '{}' });
  expect(status).toBe(405);
  expect(headers.allow?.split(', ').toSorted()).toEqual(['DELETE', 'GET', 'HEAD', 'POST']);
});
