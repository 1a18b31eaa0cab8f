import * as z from 'zod';
import { EngineRefusal } from './engine.ts';
import { parseJson } from '../../lib/parse-json.ts';

/** What an engine says while it pulls or builds: one JSON object a line. */
const EngineMessage = z.looseObject({
  status: z.string().optional(),
  /** The layer that `status` is about. */
  id: z.string().optional(),
  progressDetail: z.looseObject({ current: z.number().optional(), total: z.number().optional() }).optional(),
  /** A piece of a build's log; not always whole lines. */
  stream: z.string().optional(),
  error: z.string().optional(),
});
export type EngineMessage = z.infer<typeof EngineMessage>;

/**
 * Passes on every message until the stream ends. The status of the reply was 200 before the work began: what failed
 * since is only in here, and thrown as a refusal of `what`.
 */
export async function readEngineMessages(
  stream: AsyncIterable<string | Uint8Array>,
  what: string,
  onMessage: (message: EngineMessage) => void,
): Promise<void> {
  for await (const line of readLines(stream)) {
    const message = parseMessage(line);
    if (message === undefined) continue;
    if (message.error !== undefined) throw new EngineRefusal(what, 500, message.error.trim());
    onMessage(message);
  }
}

/** Undefined for what is no message: engines of other makers send more than we know. */
function parseMessage(line: string): EngineMessage | undefined {
  return EngineMessage.safeParse(parseJson(line)).data;
}

async function* readLines(stream: AsyncIterable<string | Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let begun = '';
  for await (const chunk of stream) {
    const lines = (
      begun + (typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }))
    ).split('\n');
    begun = lines.pop() ?? '';
    yield* lines;
  }
  yield begun;
}
