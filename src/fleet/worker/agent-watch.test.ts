import { expect, test } from 'vitest';
import { AgentEars } from './agent-ears.ts';
import { readVerdict } from './agent-words.ts';
import { addFigures, NO_FIGURES } from './agent-watch.ts';
import type { AgentEvent } from './claude-events.ts';
import type { RunResult } from './run-in-cell.ts';

/** As Claude Code 2.1.325 prints them, without what nobody reads here. */
const INIT = { type: 'system', subtype: 'init', claude_code_version: '2.1.325', model: 'claude-opus-5-5' };
const USAGE = {
  input_tokens: 100,
  cache_creation_input_tokens: 5,
  cache_read_input_tokens: 1,
  output_tokens: 1,
};
const said = (content: object, id = 'msg_1') => ({
  type: 'assistant',
  message: { id, role: 'assistant', content: [content], usage: USAGE },
});
const TEXT = said({ type: 'text', text: 'I write the file.' });
const TOOL = said({ type: 'tool_use', name: 'Bash', input: { command: 'echo hello >\n hello.txt' } });
const TOOL_RESULT = {
  type: 'user',
  message: { role: 'user', content: [{ type: 'tool_result', content: '1' }] },
};
const RETRY = {
  type: 'system', subtype: 'api_retry', attempt: 1, max_retries: 10, error_status: 529, error: 'overloaded',
}; // prettier-ignore
const result = (change: object) => ({
  type: 'result', subtype: 'success', is_error: false, num_turns: 2, total_cost_usd: 0.00178,
  usage: { input_tokens: 200, output_tokens: 49 }, result: 'All done.', api_error_status: null, ...change,
}); // prettier-ignore
const ENDED: RunResult = { reason: 'exit', code: 0, stdout: '', stderr: '' };

function listen(lines: readonly (object | string)[], piece = 7) {
  const events: AgentEvent[] = [];
  let shown = '';
  const ears = new AgentEars('stream-json', {
    onOutput: (bytes) => (shown += Buffer.from(bytes).toString()),
    onEvent: (event) => events.push(event),
  });
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += piece) ears.hear('stdout', bytes.subarray(at, at + piece));
  return { end: ears.end(ENDED), events, shown };
}

test('[FL-13] one sees what the agent says and does, and what it cost', () => {
  const { end, events, shown } = listen([INIT, TEXT, TOOL, TOOL_RESULT, RETRY, result({})]);
  expect(shown.split('\n')).toEqual([
    'I write the file.',
    'Bash: echo hello > hello.txt',
    '! the API refused (529, overloaded), attempt 1 of 10',
    '[2 turns, 200 tokens in, 49 out, $0.0018]',
    '',
  ]);
  expect(events.map(({ kind }) => kind)).toEqual([
    'begun',
    'text',
    'tokens',
    'tool',
    'tokens',
    'retry',
    'result',
  ]);
  expect(end).toMatchObject({ words: 'All done.', problem: undefined });
  expect(end.figures).toEqual({
    turns: 2, tool_calls: 1, input_tokens: 200, output_tokens: 49, cost_usd: 0.00178,
  }); // prettier-ignore
});

test('[FL-13] of one that was killed is known what it said so far, each message once', () => {
  const { end } = listen([INIT, TEXT, TOOL, said({ type: 'text', text: 'Now the tests.' }, 'msg_2')]);
  expect(end.words).toBe('Now the tests.');
  expect(end.figures).toEqual({
    ...NO_FIGURES,
    turns: 2,
    tool_calls: 1,
    input_tokens: 212,
    output_tokens: 2,
  });
  expect(addFigures(end.figures ?? NO_FIGURES, end.figures ?? NO_FIGURES).turns).toBe(4);
});

test.each([
  [{ is_error: true, api_error_status: 401, result: 'Invalid API key · Fix external API key' }, 'signed-out'],
  [{ is_error: true, result: 'Not logged in · Please run /login' }, 'signed-out'],
  [{ is_error: true, api_error_status: 429, result: 'API Error: Request rejected (429)' }, 'api'],
  [{ is_error: true, result: 'API Error: Connection dropped (ECONNRESET).' }, undefined],
  [
    {
      is_error: true,
      subtype: 'error_max_budget_usd',
      result: undefined,
      errors: ['Reached maximum budget'],
    },
    'cost',
  ],
  [{ is_error: true, subtype: 'error_max_turns', result: undefined, errors: ['Reached maximum'] }, 'turns'],
])('[FL-12] %j is the problem %s', (change, problem) => {
  const { end } = listen([INIT, result(change)]);
  expect(end.problem).toBe(problem);
  expect(end.words).not.toBe('');
});

test('[FL-03] what an agent complains of hides none of its last words', () => {
  const ears = new AgentEars('stream-json', { onOutput: () => {} });
  ears.hear('stdout', Buffer.from(JSON.stringify(result({ result: 'HOTCELL: blocked - no compiler' }))));
  const stderr = 'a warning\n'.repeat(20);
  ears.hear('stderr', Buffer.from(stderr));
  const { answer, words } = ears.end({ ...ENDED, stderr });
  expect(readVerdict(answer)).toEqual({ kind: 'blocked', reason: 'no compiler' });
  expect(words).toContain('a warning');
});

test('[FL-13] what is no such line is shown as it is, and what nobody knows is passed over', () => {
  const odd = [
    '--dangerously-skip-permissions cannot be used with root',
    { type: 'new' },
    '{broken',
    '[]',
    '',
  ];
  const { end, shown } = listen([
    ...odd,
    { type: 'assistant', message: 'x' },
    { type: 'result', usage: 'x' },
  ]);
  expect(shown).toContain('cannot be used with root\n');
  expect(end.words).toBe('[]');
  expect(listen(odd.slice(0, 1)).end.words).toContain('cannot be used with root');
});
