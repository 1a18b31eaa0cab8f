import type { Operation } from './openapi-parts.ts';

const MESSAGE = { schema: { type: 'object' } };
const MESSAGES = { 'application/json': MESSAGE, 'text/event-stream': { schema: { type: 'string' } } };
const ANSWERED = { description: 'a message of JSON-RPC, or a stream of them', content: MESSAGES };

/** The address for AI clients; what is said there is the Model Context Protocol's business. */
export const MCP_OPERATIONS: readonly Operation[] = [
  {
    at: 'post /mcp',
    operationId: 'mcp',
    summary: 'The Model Context Protocol over Streamable HTTP, for AI clients',
    description:
      'Revisions 2026-07-28 and 2025-11-25 and older. Tools: run_code and what belongs to it. Answers 404 where MCP is not served.',
    requestBody: {
      required: true,
      content: {
        'application/json': {
          ...MESSAGE,
          example: { jsonrpc: '2.0', id: 1, method: 'ping' },
        },
      },
    },
    replies: { 200: ANSWERED, 202: { description: 'taken, with no answer' } },
    errors: ['INVALID_JSON', 'BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE', 'TOO_BUSY'],
  },
  {
    at: 'get /mcp',
    operationId: 'mcpStream',
    summary: 'Messages of the server to a client of revision 2025-11-25 or older',
    replies: { 200: { ...ANSWERED, content: { 'text/event-stream': MESSAGES['text/event-stream'] } } },
  },
  {
    at: 'delete /mcp',
    operationId: 'mcpEnd',
    summary: 'Ends the session of a client of revision 2025-11-25 or older',
    replies: { 200: { description: 'it has ended, and its cell with it' } },
  },
];
