import { inputRequired, inputResponse, type ElicitRequestFormParams } from '@modelcontextprotocol/server';
import * as z from 'zod';
import type { Served } from '../../../src/mcp/tool.ts';
import { say } from './samples.ts';

type Form = ElicitRequestFormParams['requestedSchema'];

/** Tools that ask the user or the model of the client. */
export function addQuestionFixtures({ server }: Served): void {
  addForm('test_elicitation', 'User response', USER_FORM);
  addForm('test_elicitation_sep1034_defaults', 'Elicitation completed', DEFAULTS_FORM);
  addForm('test_elicitation_sep1330_enums', 'Elicitation completed', ENUMS_FORM);
  addForm('test_streaming_elicitation', 'Elicitation completed', USER_FORM);

  server.registerTool(
    'test_sampling',
    { description: 'asks the model', inputSchema: z.object({ prompt: z.string() }) },
    ({ prompt }, { mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, 'answer');
      if (answer.kind === 'sampling') return say(`LLM response: ${JSON.stringify(answer.result.content)}`);
      return inputRequired({ inputRequests: { answer: askModel(prompt) } });
    },
  );
  server.registerTool('test_missing_capability', { description: 'needs sampling' }, ({ mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'answer');
    return answer.kind === 'sampling'
      ? say('it has it')
      : inputRequired({ inputRequests: { answer: askModel('hello') } });
  });

  function addForm(name: string, begin: string, requestedSchema: Form): void {
    server.registerTool(
      name,
      {
        description: 'asks the user',
        inputSchema: z.object({ message: z.string().default('Please answer') }),
      },
      ({ message }, { mcpReq }) => {
        const answer = inputResponse(mcpReq.inputResponses, 'answer');
        if (answer.kind === 'elicit') {
          const { action } = answer;
          const content = 'content' in answer ? answer.content : {};
          return say(`${begin}: action=${action}, content=${JSON.stringify(content)}`);
        }
        return inputRequired({
          inputRequests: { answer: inputRequired.elicit({ message, requestedSchema }) },
        });
      },
    );
  }
}

export function askModel(text: string, maxTokens = 100) {
  return inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text } }],
    maxTokens,
  });
}

const USER_FORM: Form = {
  type: 'object',
  properties: {
    username: { type: 'string', description: "User's response" },
    email: { type: 'string', description: "User's email address" },
  },
  required: ['username', 'email'],
};

const DEFAULTS_FORM: Form = {
  type: 'object',
  properties: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
  required: [],
};

const OPTIONS = ['option1', 'option2', 'option3'];
const titled = (word: string) => [
  { const: 'value1', title: `First ${word}` },
  { const: 'value2', title: `Second ${word}` },
  { const: 'value3', title: `Third ${word}` },
];
const ENUMS_FORM: Form = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: OPTIONS },
    titledSingle: { type: 'string', oneOf: titled('Option') },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array', items: { type: 'string', enum: OPTIONS } },
    titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
  },
  required: [],
};
