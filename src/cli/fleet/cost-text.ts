import type { AgentFigures } from '../../fleet/worker/agent-watch.ts';

/** For people: `$1.24`. */
export function toPrice({ cost_usd: cost }: Pick<AgentFigures, 'cost_usd'>): string {
  return `$${cost.toFixed(2)}`;
}

/** `842`, `12k`, `3.4M`. */
function toCountText(count: number): string {
  if (count < 1000) return String(Math.round(count));
  return count < 1_000_000 ? `${Math.round(count / 1000)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

export function toCostText(figures: AgentFigures): string {
  return `${toPrice(figures)}, ${toCountText(tokensOf(figures))} tokens, ${figures.turns} turns`;
}

interface Costing {
  readonly agent?: AgentFigures | undefined;
}

/** The columns TURNS, TOKENS and COST of tasks; none where no agent has said what it costs. */
export function toFigureColumns(tasks: readonly Costing[]): {
  readonly heading: readonly string[];
  readonly of: (task: Costing) => readonly string[];
} {
  if (tasks.every(({ agent }) => agent === undefined)) return { heading: [], of: () => [] };
  const of = ({ agent }: Costing): readonly string[] =>
    agent === undefined ? ['', '', ''] : [String(agent.turns), toCountText(tokensOf(agent)), toPrice(agent)];
  return { heading: ['TURNS', 'TOKENS', 'COST'], of };
}

function tokensOf({ input_tokens: input, output_tokens: output }: AgentFigures): number {
  return input + output;
}
