import {
  acceptedContent,
  completable,
  inputRequired,
  type GetPromptResult,
} from '@modelcontextprotocol/server';
import * as z from 'zod';
import type { Served } from '../../../src/mcp/tool.ts';
import { askText } from './rounds.ts';
import { PNG } from './samples.ts';

/** Prompts with fixed names. */
export function addPromptFixtures({ server }: Served): void {
  server.registerPrompt('test_simple_prompt', { description: 'a text' }, () =>
    fromUser({ type: 'text', text: 'This is a simple prompt for testing.' }),
  );
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description: 'a text with arguments',
      argsSchema: z.object({
        arg1: completable(z.string(), (begin) =>
          ['paris', 'park', 'party'].filter((word) => word.startsWith(begin)),
        ),
        arg2: z.string(),
      }),
    },
    ({ arg1, arg2 }) =>
      fromUser({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` }),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'a resource', argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri: uri }) =>
      fromUser(
        {
          type: 'resource',
          resource: { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
        },
        { type: 'text', text: 'Please process the embedded resource above.' },
      ),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'an image' }, () =>
    fromUser(
      { type: 'image', data: PNG, mimeType: 'image/png' },
      { type: 'text', text: 'Please analyze the image above.' },
    ),
  );
  server.registerPrompt('test_input_required_result_prompt', { description: 'asks' }, ({ mcpReq }) => {
    const context = acceptedContent(mcpReq.inputResponses, 'user_context')?.['context'];
    return typeof context === 'string'
      ? fromUser({ type: 'text', text: `Use this context: ${context}` })
      : inputRequired({
          inputRequests: { user_context: askText('What context should the prompt use?', 'context') },
        });
  });
}

function fromUser(...contents: GetPromptResult['messages'][number]['content'][]): GetPromptResult {
  return { messages: contents.map((content) => ({ role: 'user', content })) };
}
