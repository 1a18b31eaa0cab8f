import { expect, test } from 'vitest';
import { FleetConfig } from '../fleet-config.ts';
import { boundReached, planAgentCall, speechOf, whyUnbounded } from './agent-call.ts';
import { NO_FIGURES } from './agent-watch.ts';

const agent = (change: object = {}): FleetConfig['agent'] => FleetConfig.parse({ agent: change }).agent;

test('[FL-03] Claude Code is asked to say what it does, unless somebody asks for something else', () => {
  const { args, speaks } = planAgentCall(agent(), 'the task', undefined);
  expect([args.slice(-3), speaks]).toEqual([['--output-format', 'stream-json', '--verbose'], 'stream-json']);
  for (const words of [['--output-format', 'json'], ['--output-format=text']])
    expect(planAgentCall(agent({ args: words }), '', undefined)).toEqual({ args: words, speaks: 'text' });
  const own = ['-p', '--output-format', 'stream-json', '--verbose'];
  expect(planAgentCall(agent({ args: own }), '', undefined)).toEqual({ args: own, speaks: 'stream-json' });
  expect(planAgentCall(agent({ command: 'node', args: ['x'] }), '', undefined)).toEqual({
    args: ['x'],
    speaks: 'text',
  });
  expect(speechOf(agent({ command: './tools/claude' }))).toBe('stream-json');
  expect(speechOf(agent({ output: 'text' }))).toBe('text');
});

test('[FL-03] bounds are what is left of them, and the prompt comes last', () => {
  const bounded = agent({ max_cost_usd: 2, max_turns: 30, prompt: 'arg' });
  const spent = { ...NO_FIGURES, cost_usd: 0.5, turns: 12 };
  expect(planAgentCall(bounded, 'the task', spent).args.slice(-5)).toEqual([
    '--max-budget-usd',
    '1.5000',
    '--max-turns',
    '18',
    'the task',
  ]);
  expect(boundReached(bounded, spent)).toBeUndefined();
  expect(boundReached(bounded, { ...spent, cost_usd: 2 })).toContain('agent.max_cost_usd');
  expect(boundReached(bounded, { ...spent, turns: 30 })).toContain('30 turns');
});

test('[FL-03] a bound that nobody can keep is refused', () => {
  expect(whyUnbounded(agent({ max_turns: 3 }))).toBeUndefined();
  expect(whyUnbounded(agent({ command: 'node' }))).toBeUndefined();
  expect(whyUnbounded(agent({ max_turns: 3, command: 'node' }))).toContain('agent.max_turns');
  expect(whyUnbounded(agent({ max_cost_usd: 3, output: 'text' }))).toContain('agent.max_cost_usd');
});
