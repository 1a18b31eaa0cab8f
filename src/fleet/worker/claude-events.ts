import * as z from 'zod';
import { parseJson } from '../../lib/parse-json.ts';

const Count = z.number().nonnegative().catch(0);
const Usage = z.looseObject({
  input_tokens: Count.default(0),
  output_tokens: Count.default(0),
  cache_creation_input_tokens: Count.default(0),
  cache_read_input_tokens: Count.default(0),
});

const Block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  name: z.string().optional(),
  input: z.record(z.string(), z.unknown()).optional(),
});

/** What `claude --output-format stream-json` prints, as far as it is of use here. Other versions may say more, or less. */
const Line = z.looseObject({
  type: z.string(),
  subtype: z.string().optional(),
  message: z
    .looseObject({
      id: z.string().optional(),
      content: z.array(Block).optional().catch(undefined),
      usage: Usage.optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
  error: z.unknown().optional(),
  claude_code_version: z.string().optional(),
  attempt: z.number().optional(),
  max_retries: z.number().optional(),
  error_status: z.number().nullish(),
  is_error: z.boolean().optional(),
  api_error_status: z.number().nullish(),
  num_turns: Count.optional(),
  total_cost_usd: Count.optional(),
  usage: Usage.optional().catch(undefined),
  result: z.string().optional(),
  errors: z.array(z.string()).optional().catch(undefined),
});

export interface Tokens {
  readonly input: number;
  readonly output: number;
}

/** Why an agent could not do what it was asked, where that is not the task's fault. */
export type AgentProblem = 'signed-out' | 'cost' | 'turns' | 'api';

/** What an agent does and says. */
export type AgentEvent =
  | { readonly kind: 'begun'; readonly version: string | undefined }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'tool'; readonly name: string; readonly about: string }
  /** Of one message, as far as they are known; said again while it grows. */
  | { readonly kind: 'tokens'; readonly message: string; readonly tokens: Tokens }
  | { readonly kind: 'retry'; readonly text: string }
  | {
      readonly kind: 'result';
      readonly words: string;
      readonly turns: number;
      readonly tokens: Tokens;
      readonly costUsd: number;
      readonly problem: AgentProblem | undefined;
    };

/** SECURITY: every word of it may be the doing of somebody else in the cell; nothing is done because of it but to show it. */
export function readClaudeLine(text: string): AgentEvent[] {
  const line = Line.safeParse(parseJson(text)).data;
  if (line?.type === 'system') return readSystem(line);
  if (line?.type === 'assistant') return readAssistant(line);
  return line?.type === 'result' ? [readResult(line)] : [];
}

type Said = z.infer<typeof Line>;

function readSystem({
  subtype,
  attempt,
  max_retries: most,
  error_status: status,
  ...line
}: Said): AgentEvent[] {
  if (subtype === 'init') return [{ kind: 'begun', version: line.claude_code_version }];
  if (subtype !== 'api_retry') return [];
  const why = typeof line.error === 'string' ? line.error : 'unknown';
  const text = `the API refused (${status ?? 'no answer'}, ${why}), attempt ${attempt ?? '?'} of ${most ?? '?'}`;
  return [{ kind: 'retry', text }];
}

function readAssistant({ message, error }: Said): AgentEvent[] {
  // What went wrong is said once more by the result.
  if (error !== undefined && error !== null) return [];
  const { id, content = [], usage } = message ?? {};
  const said = content.flatMap(({ type, text = '', name = '', input = {} }): AgentEvent[] => {
    if (type === 'text' && text.trim() !== '') return [{ kind: 'text', text }];
    return type === 'tool_use' ? [{ kind: 'tool', name, about: aboutOf(input) }] : [];
  });
  return usage === undefined || id === undefined
    ? said
    : [...said, { kind: 'tokens', message: id, tokens: toTokens(usage) }];
}

const TELLING = ['command', 'file_path', 'path', 'pattern', 'url', 'query', 'description', 'prompt'];
const LONGEST_ABOUT = 200;

/** What a tool is called for: the one input that tells most, as one line. */
function aboutOf(input: Readonly<Record<string, unknown>>): string {
  const known = TELLING.map((name) => input[name]).find((value) => typeof value === 'string');
  const text = typeof known === 'string' ? known.trim().replaceAll(/\s+/g, ' ') : '';
  return text.length > LONGEST_ABOUT ? `${text.slice(0, LONGEST_ABOUT)}…` : text;
}

function readResult(line: Said): AgentEvent {
  const { result, errors = [], num_turns: turns = 0, total_cost_usd: costUsd = 0, usage } = line;
  return {
    kind: 'result',
    words: result ?? errors.join('\n'),
    turns,
    costUsd,
    tokens: usage === undefined ? { input: 0, output: 0 } : toTokens(usage),
    problem: problemOf(line),
  };
}

function problemOf({
  subtype,
  is_error: isError,
  api_error_status: status,
  result = '',
}: Said): AgentProblem | undefined {
  if (subtype === 'error_max_budget_usd') return 'cost';
  if (subtype === 'error_max_turns') return 'turns';
  if (isError !== true) return undefined;
  if (status === 401 || status === 403 || /run \/login|Invalid API key/i.test(result)) return 'signed-out';
  return status === null || status === undefined ? undefined : 'api';
}

function toTokens(usage: z.infer<typeof Usage>): Tokens {
  const { input_tokens: fresh, cache_creation_input_tokens: made, cache_read_input_tokens: read } = usage;
  return { input: fresh + made + read, output: usage.output_tokens };
}
