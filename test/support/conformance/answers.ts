import { setTimeout as pause } from 'node:timers/promises';
import { fromJsonSchema, type ServerContext } from '@modelcontextprotocol/server';
import type { Served } from '../../../src/mcp/tool.ts';
import { PNG, WAV, say } from './samples.ts';

const PAUSE_MS = 50;

/** Tools that answer something, or tell something before they answer. */
export function addAnswerFixtures({ server }: Served): void {
  server.registerTool('test_simple_text', { description: 'answers text' }, () =>
    say('This is a simple text response for testing.'),
  );
  server.registerTool('test_image_content', { description: 'answers an image' }, () => ({
    content: [{ type: 'image', data: PNG, mimeType: 'image/png' }],
  }));
  server.registerTool('test_audio_content', { description: 'answers a sound' }, () => ({
    content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }],
  }));
  server.registerTool('test_embedded_resource', { description: 'answers a resource' }, () => ({
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }));
  server.registerTool('test_multiple_content_types', { description: 'answers several things' }, () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      { type: 'image', data: PNG, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: JSON.stringify({ test: 'data', value: 123 }),
        },
      },
    ],
  }));
  server.registerTool('test_error_handling', { description: 'fails' }, () => ({
    ...say('This tool intentionally returns an error for testing'),
    isError: true,
  }));
  server.registerTool('test_tool_with_progress', { description: 'tells progress' }, tellProgress);
  server.registerTool('test_tool_with_logging', { description: 'logs' }, logThrice);
  server.registerTool('test_logging_tool', { description: 'logs' }, logThrice);
  addListChanges(server);
  server.registerTool(
    'json_schema_2020_12_tool',
    { description: 'has a schema with everything', inputSchema: fromJsonSchema(EVERYTHING) },
    () => say('the schema is the test'),
  );
}

function addListChanges(server: Served['server']): void {
  server.registerTool('test_trigger_tool_change', { description: 'says that tools have changed' }, () => {
    server.sendToolListChanged();
    return say('said');
  });
  server.registerTool('test_trigger_prompt_change', { description: 'says that prompts have changed' }, () => {
    server.sendPromptListChanged();
    return say('said');
  });
}

async function tellProgress({ mcpReq }: ServerContext) {
  const { _meta: meta } = mcpReq;
  const progressToken = meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    await pause(PAUSE_MS);
    if (progressToken !== undefined)
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 100 },
      });
  }
  return say('told');
}

async function logThrice({ mcpReq }: ServerContext) {
  for (const text of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    // oxlint-disable-next-line typescript/no-deprecated -- this is the test
    await mcpReq.log('info', text);
    await pause(PAUSE_MS);
  }
  return say('logged');
}

const EVERYTHING = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
} as const;
