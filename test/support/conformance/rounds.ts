import {
  CLIENT_CAPABILITIES_META_KEY,
  acceptedContent,
  inputRequired,
  inputResponse,
  type InputRequest,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { Served } from '../../../src/mcp/tool.ts';
import { askModel } from './questions.ts';
import { say } from './samples.ts';

const PREFIX = 'test_input_required_result_';

/** Calls that take several rounds. */
export function addRoundFixtures(served: Served): void {
  addSingleQuestions(served);
  addStates(served);
  const { server } = served;
  server.registerTool(`${PREFIX}multiple_inputs`, { description: 'asks three things' }, async (context) => {
    const { inputResponses } = context.mcpReq;
    const keys = ['user_name', 'greeting', 'client_roots'];
    if (keys.every((key) => inputResponse(inputResponses, key).kind !== 'missing')) return say('complete');
    return inputRequired({
      inputRequests: {
        user_name: askText('What is your name?', 'name'),
        greeting: askModel('Generate a greeting', 50),
        client_roots: inputRequired.listRoots(),
      },
      requestState: await served.mintState({ round: 1 }, context),
    });
  });
  server.registerTool(`${PREFIX}capabilities`, { description: 'asks what can be asked' }, ({ mcpReq }) => {
    const declared: unknown = Reflect.get(mcpReq.envelope ?? {}, CLIENT_CAPABILITIES_META_KEY);
    const can = (name: string): boolean =>
      typeof declared === 'object' && declared !== null && name in declared;
    return inputRequired({
      inputRequests: {
        ...(can('sampling') ? { greeting: askModel('Generate a greeting') } : {}),
        ...(can('elicitation') ? { user_name: askText('What is your name?', 'name') } : {}),
      },
    });
  });
}

function addSingleQuestions({ server }: Served): void {
  server.registerTool(`${PREFIX}elicitation`, { description: 'asks for a name' }, ({ mcpReq }) => {
    const name = acceptedContent(mcpReq.inputResponses, 'user_name')?.['name'];
    return typeof name === 'string'
      ? say(`Hello, ${name}!`)
      : inputRequired({ inputRequests: { user_name: askText('What is your name?', 'name') } });
  });
  server.registerTool(`${PREFIX}sampling`, { description: 'asks for a capital' }, ({ mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'capital_question');
    return answer.kind === 'sampling'
      ? say(JSON.stringify(answer.result.content))
      : inputRequired({ inputRequests: { capital_question: askModel('What is the capital of France?') } });
  });
  server.registerTool(`${PREFIX}list_roots`, { description: 'asks for roots' }, ({ mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'client_roots');
    return answer.kind === 'roots'
      ? say(JSON.stringify(answer.roots))
      : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
  });
}

function addStates(served: Served): void {
  const { server } = served;
  const confirm = async (context: ServerContext) => {
    if (context.mcpReq.requestState() !== undefined) return say('state-ok');
    return inputRequired({
      inputRequests: {
        confirm: inputRequired.elicit({
          message: 'Please confirm',
          requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
        }),
      },
      requestState: await served.mintState({ round: 1 }, context),
    });
  };
  server.registerTool(`${PREFIX}request_state`, { description: 'keeps a state' }, confirm);
  server.registerTool(`${PREFIX}tampered_state`, { description: 'keeps a signed state' }, confirm);
  server.registerTool(`${PREFIX}multi_round`, { description: 'asks twice' }, async (context) => {
    const { inputResponses } = context.mcpReq;
    if (acceptedContent(inputResponses, 'step2') !== undefined) return say('complete');
    const isSecond = acceptedContent(inputResponses, 'step1') !== undefined;
    return inputRequired({
      inputRequests: isSecond
        ? { step2: askText('Step 2: What is your favorite color?', 'color') }
        : { step1: askText('Step 1: What is your name?', 'name') },
      requestState: await served.mintState({ round: isSecond ? 2 : 1 }, context),
    });
  });
}

export function askText(message: string, field: string): InputRequest {
  return inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] },
  });
}
