import { isClaudeCode } from '../agent/check-agent.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { AgentFigures } from './agent-watch.ts';

type Agent = FleetConfig['agent'];

/** How an agent is called, and in what it answers. */
export interface AgentCommand {
  /** After its name. */
  readonly args: readonly string[];
  readonly speaks: 'text' | 'stream-json';
}

const FORMAT = '--output-format';

/** What it prints: Claude Code tells what it does and costs if it is asked to, others print text. */
export function speechOf(agent: Agent): AgentCommand['speaks'] {
  const { args, output } = agent;
  if (output !== 'auto') return output;
  const at = args.findIndex((word) => word === FORMAT || word.startsWith(`${FORMAT}=`));
  const asked = at === -1 ? undefined : (args[at]?.split('=')[1] ?? args[at + 1]);
  if (asked !== undefined) return asked === 'stream-json' ? asked : 'text';
  return isClaudeCode(agent) ? 'stream-json' : 'text';
}

/** `spent`: what the task has cost in earlier attempts. */
export function planAgentCall(agent: Agent, prompt: string, spent: AgentFigures | undefined): AgentCommand {
  const speaks = speechOf(agent);
  const isAsked = agent.args.some((word) => word.startsWith(FORMAT));
  const { max_cost_usd: cost, max_turns: turns } = agent;
  return {
    speaks,
    args: [
      ...agent.args,
      ...(speaks === 'stream-json' && !isAsked ? [FORMAT, 'stream-json', '--verbose'] : []),
      ...(cost === undefined ? [] : ['--max-budget-usd', (cost - (spent?.cost_usd ?? 0)).toFixed(4)]),
      ...(turns === undefined ? [] : ['--max-turns', String(turns - (spent?.turns ?? 0))]),
      ...(agent.prompt === 'arg' ? [prompt] : []),
    ],
  };
}

/** Which of its bounds a task has reached, in words; undefined: it may go on. */
export function boundReached(agent: Agent, spent: AgentFigures): string | undefined {
  const { max_cost_usd: cost, max_turns: turns } = agent;
  if (cost !== undefined && spent.cost_usd >= cost) return describeBound(agent, 'cost');
  return turns !== undefined && spent.turns >= turns ? describeBound(agent, 'turns') : undefined;
}

export function describeBound(
  { max_cost_usd: cost, max_turns: turns }: Agent,
  which: 'cost' | 'turns',
): string {
  const [bound, name] = which === 'cost' ? [`$${cost}`, 'max_cost_usd'] : [`${turns} turns`, 'max_turns'];
  return `the task has used up its ${bound}; raise agent.${name} and retry it`;
}

/** Bounds that nobody could keep. */
export function whyUnbounded(agent: Agent): string | undefined {
  const named = (['max_cost_usd', 'max_turns'] as const).filter((name) => agent[name] !== undefined);
  return named.length === 0 || (speechOf(agent) === 'stream-json' && isClaudeCode(agent))
    ? undefined
    : `agent.${named.join(' and agent.')} can be kept for Claude Code only, which tells what it costs`;
}
