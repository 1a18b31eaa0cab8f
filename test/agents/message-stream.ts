import type { ServerResponse } from 'node:http';
import type { RequestBody } from './seen-request.ts';
import { ERRORS, type Turn } from './turns.ts';

/** What the Messages API counts of a text, more or less. */
const CHARACTERS_PER_TOKEN = 4;
/** Text comes in small pieces. */
const PIECE = 24;

type AnswerTurn = Extract<Turn, { kind: 'answer' }>;

export interface Asked {
  readonly body: RequestBody;
  /** Of the request, for the tokens that it costs. */
  readonly text: string;
  readonly folder: string;
  /** No other answer has this number. */
  readonly number: number;
}

/** Answers as the Messages API does: as a stream of events, or in one piece if that was asked for. */
export async function answer(response: ServerResponse, turn: Turn, asked: Asked): Promise<void> {
  if (turn.kind === 'error') {
    await turn.hold?.arrive();
    sendError(response, ERRORS[turn.status], turn);
    return;
  }
  if (turn.kind === 'answer' && asked.body.stream !== true) {
    await turn.hold?.arrive();
    response.writeHead(200, { 'content-type': 'application/json', 'request-id': `req_${asked.number}` });
    response.end(JSON.stringify(toMessage(turn, asked)));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'request-id': `req_${asked.number}` });
  send(response, 'message_start', { message: toStart(turn, asked) });
  send(response, 'ping', {});
  await turn.hold?.arrive();
  if (turn.kind === 'cut') {
    sendText(response, 0, turn.text);
    // What was written is under way before the connection ends.
    response.write(':\n\n', () => response.destroy());
    return;
  }
  for (const [index, block] of toBlocks(turn, asked).entries()) {
    if (block.type === 'text') sendText(response, index, block.text);
    else {
      send(response, 'content_block_start', { index, content_block: { ...block, input: {} } });
      const json = JSON.stringify(block.input);
      for (let at = 0; at < json.length; at += PIECE)
        sendDelta(response, index, { type: 'input_json_delta', partial_json: json.slice(at, at + PIECE) });
    }
    send(response, 'content_block_stop', { index });
  }
  const { stop_reason, usage } = toMessage(turn, asked);
  send(response, 'message_delta', {
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: usage.output_tokens },
  });
  send(response, 'message_stop', {});
  response.end();
}

interface ErrorWords {
  readonly type: string;
  readonly message: string;
}

export function sendError(
  response: ServerResponse,
  error: ErrorWords,
  { status, retryAfter }: { readonly status: number; readonly retryAfter?: number | undefined },
): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
  });
  response.end(JSON.stringify({ type: 'error', error }));
}

function send(response: ServerResponse, type: string, data: object): void {
  response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
}

function sendDelta(response: ServerResponse, index: number, delta: object): void {
  send(response, 'content_block_delta', { index, delta });
}

function sendText(response: ServerResponse, index: number, text: string): void {
  send(response, 'content_block_start', { index, content_block: { type: 'text', text: '' } });
  for (let at = 0; at < text.length; at += PIECE)
    sendDelta(response, index, { type: 'text_delta', text: text.slice(at, at + PIECE) });
}

function toBlocks({ blocks }: AnswerTurn, { folder, number }: Asked) {
  return blocks.map((block, index) => {
    if (block.type === 'text') return block;
    const input = Object.entries(block.input).map(([name, value]) => [
      name,
      typeof value === 'string' ? value.replaceAll('{cwd}', folder) : value,
    ]);
    return {
      type: 'tool_use' as const,
      id: `toolu_${number}_${index}`,
      name: block.name,
      input: Object.fromEntries(input) as object,
    };
  });
}

function toMessage(turn: AnswerTurn, asked: Asked) {
  const content = toBlocks(turn, asked);
  const output = turn.tokens?.output ?? countTokens(JSON.stringify(content));
  const start = toStart(turn, asked);
  return {
    ...start,
    content,
    stop_reason: content.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn',
    usage: { ...start.usage, output_tokens: output },
  };
}

function toStart(turn: Turn, { body, text, number }: Asked) {
  const input = turn.kind === 'answer' ? turn.tokens?.input : undefined;
  return {
    id: `msg_${number}`,
    type: 'message',
    role: 'assistant',
    model: body.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: input ?? countTokens(text),
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 1,
    },
  };
}

function countTokens(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}
