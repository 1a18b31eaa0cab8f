import { LineSplitter } from '../../lib/line-splitter.ts';
import { readClaudeLine, type AgentEvent, type AgentProblem, type Tokens } from './claude-events.ts';

/** A line with more holds a file that a tool has read. */
const LONGEST_LINE = 8 * 1024 ** 2;

/** What calls of an agent have cost. That of one that was killed is known without its price. */
export type AgentFigures = Readonly<
  Record<'turns' | 'tool_calls' | 'input_tokens' | 'output_tokens' | 'cost_usd', number>
>;

export const NO_FIGURES: AgentFigures = {
  turns: 0,
  tool_calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  cost_usd: 0,
};

export function addFigures(one: AgentFigures, other: AgentFigures): AgentFigures {
  return {
    turns: one.turns + other.turns,
    tool_calls: one.tool_calls + other.tool_calls,
    input_tokens: one.input_tokens + other.input_tokens,
    output_tokens: one.output_tokens + other.output_tokens,
    cost_usd: one.cost_usd + other.cost_usd,
  };
}

/** What somebody hears who watches an agent. */
export interface AgentListener {
  /** For people, as it is kept. */
  onOutput(bytes: Uint8Array): void;
  onEvent?(event: AgentEvent, figures: AgentFigures): void;
}

/** Makes words and figures of what an agent prints as `stream-json`. */
export class AgentWatch {
  readonly #lines = new LineSplitter(LONGEST_LINE);
  readonly #listener: AgentListener;
  readonly #messages = new Map<string, Tokens>();
  #seen: Tokens = { input: 0, output: 0 };
  #toolCalls = 0;
  #lastText = '';
  #result: Extract<AgentEvent, { kind: 'result' }> | undefined;
  #foreign = '';

  constructor(listener: AgentListener) {
    this.#listener = listener;
  }

  push(bytes: Uint8Array): void {
    for (const line of this.#lines.push(bytes)) this.#take(line);
  }

  end(): void {
    const rest = this.#lines.end();
    if (rest !== undefined) this.#take(rest);
  }

  /** What it said at last. */
  get words(): string {
    return [this.#result?.words, this.#lastText, this.#foreign].find((text) => text) ?? '';
  }

  get problem(): AgentProblem | undefined {
    return this.#result?.problem;
  }

  get figures(): AgentFigures {
    const { input, output } = this.#result?.tokens ?? this.#seen;
    return {
      turns: this.#result?.turns ?? this.#messages.size,
      tool_calls: this.#toolCalls,
      input_tokens: input,
      output_tokens: output,
      cost_usd: this.#result?.costUsd ?? 0,
    };
  }

  #take(line: string): void {
    const events = line.startsWith('{') ? readClaudeLine(line) : this.#takeForeign(line);
    for (const event of events) {
      this.#note(event);
      const text = toText(event, this.figures);
      if (text !== '') this.#listener.onOutput(Buffer.from(`${text}\n`));
      this.#listener.onEvent?.(event, this.figures);
    }
  }

  /** What says why it did not begin is no JSON. */
  #takeForeign(line: string): AgentEvent[] {
    if (line.trim() === '') return [];
    this.#foreign = `${this.#foreign}${line}\n`.slice(-4000);
    return [{ kind: 'text', text: line }];
  }

  /** One message is said in pieces, and each of them has the figures of all. */
  #count(message: string, tokens: Tokens): void {
    const before = this.#messages.get(message) ?? { input: 0, output: 0 };
    this.#messages.set(message, tokens);
    this.#seen = {
      input: this.#seen.input + tokens.input - before.input,
      output: this.#seen.output + tokens.output - before.output,
    };
  }

  #note(event: AgentEvent): void {
    if (event.kind === 'tokens') this.#count(event.message, event.tokens);
    else if (event.kind === 'tool') this.#toolCalls++;
    else if (event.kind === 'text') this.#lastText = event.text;
    else if (event.kind === 'result') this.#result = event;
  }
}

function toText(event: AgentEvent, figures: AgentFigures): string {
  switch (event.kind) {
    case 'text':
      return event.text;
    case 'tool':
      return describeTool(event);
    case 'retry':
      return `! ${event.text}`;
    case 'result':
      return `[${describeFigures(figures)}]`;
    case 'begun':
    case 'tokens':
      return '';
  }
}

export function describeTool({ name, about }: Extract<AgentEvent, { kind: 'tool' }>): string {
  return about === '' ? name : `${name}: ${about}`;
}

/** A price is known only of calls that came to their end. */
function describeFigures({
  turns,
  input_tokens: input,
  output_tokens: output,
  cost_usd: cost,
}: AgentFigures) {
  const tokens = `${turns === 1 ? '1 turn' : `${turns} turns`}, ${input} tokens in, ${output} out`;
  return cost === 0 ? tokens : `${tokens}, $${cost.toFixed(4)}`;
}
