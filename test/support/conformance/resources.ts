import { ResourceTemplate } from '@modelcontextprotocol/server';
import type { Served } from '../../../src/mcp/tool.ts';
import { PNG } from './samples.ts';

/** Resources with fixed addresses. */
export function addResourceFixtures({ server }: Served): void {
  server.registerResource(
    'static-text',
    'test://static-text',
    { description: 'a text', mimeType: 'text/plain' },
    ({ href: uri }) => ({
      contents: [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
    }),
  );
  server.registerResource(
    'static-binary',
    'test://static-binary',
    { description: 'an image', mimeType: 'image/png' },
    ({ href: uri }) => ({ contents: [{ uri, mimeType: 'image/png', blob: PNG }] }),
  );
  server.registerResource(
    'watched',
    'test://watched-resource',
    { description: 'a text that never changes', mimeType: 'text/plain' },
    ({ href: uri }) => ({ contents: [{ uri, mimeType: 'text/plain', text: 'watched' }] }),
  );
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'by an id', mimeType: 'application/json' },
    ({ href: uri }, { id }) => {
      const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` });
      return { contents: [{ uri, mimeType: 'application/json', text }] };
    },
  );
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
}
