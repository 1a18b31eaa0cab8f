import { afterEach, beforeEach, expect, test } from 'vitest';
import { MessagesApi } from './messages-api.ts';
import { Hold, bash, costing, cut, fail, held, lasting, say, write } from './turns.ts';

let api: MessagesApi;
beforeEach(async () => {
  api = await MessagesApi.onLoopback();
});
afterEach(() => api[Symbol.asyncDispose]());

const FIRST = 'aaaaaaaa-1111-4111-8111-111111111111';
const SECOND = 'bbbbbbbb-2222-4222-8222-222222222222';

/** As the agent asks, as far as it matters. */
function ask(prompt: string, { session = FIRST, stream = true } = {}): Promise<Response> {
  const content = [
    { type: 'text', text: '<system-reminder>\n# Task OTHER: nobody wants this\n</system-reminder>' },
    { type: 'text', text: prompt },
  ].slice(prompt.startsWith('#') ? 1 : 0);
  const metadata = { user_id: JSON.stringify({ device_id: 'abc', session_id: session }) };
  const system = 'Primary working directory: /work/here\nand more';
  return fetch(`${api.url}/v1/messages?beta=true`, {
    method: 'POST',
    headers: { 'x-api-key': 'key' },
    body: JSON.stringify({ model: 'm', stream, system, metadata, messages: [{ role: 'user', content }] }),
  });
}

interface Event {
  readonly type: string;
  readonly delta?: { readonly text?: string; readonly partial_json?: string; readonly stop_reason?: string };
}

async function eventsOf(response: Response): Promise<Event[]> {
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: '));
  return lines.map((line) => JSON.parse(line.slice(6)) as Event);
}

const TASK = '# Task A-1: do it\n';

test('[FL-03] answers come turn by turn, and each start of the agent has its own', async () => {
  api.script('A-1', [write('a/b.txt', 'x'), say('first')], [say('second')]);
  const events = await eventsOf(await ask(TASK));
  const json = events.map(({ delta }) => delta?.partial_json ?? '').join('');
  expect(JSON.parse(json)).toEqual({ file_path: '/work/here/a/b.txt', content: 'x' });
  expect(events.at(-1)?.type).toBe('message_stop');
  expect(api.unasked()).toEqual(['A-1, attempt 1: 1 turns', 'A-1, attempt 2: 1 turns']);
  const second = await eventsOf(await ask(TASK, { session: SECOND }));
  expect(second.map(({ delta }) => delta?.text ?? '').join('')).toBe('second');
  expect(second.at(-2)?.delta?.stop_reason).toBe('end_turn');
  const whole = await (await ask(TASK, { stream: false })).json();
  expect(whole).toMatchObject({ content: [{ text: 'first' }], stop_reason: 'end_turn' });
  expect(api.requests.map(({ attempt, apiKey }) => [attempt, apiKey])).toEqual([
    [1, 'key'],
    [2, 'key'],
    [1, 'key'],
  ]);
  expect([api.unasked(), api.problems]).toEqual([[], []]);
});

test('[FL-03] what nobody has scripted is refused and told', async () => {
  api.script('A-1', [say()]);
  await (await ask(TASK)).text();
  expect((await ask(TASK)).status).toBe(400);
  expect((await ask(TASK, { session: SECOND })).status).toBe(400);
  expect((await ask('# Task B: do that')).status).toBe(400);
  expect((await ask('Write the requirements of the feature "x"')).status).toBe(400);
  expect((await fetch(`${api.url}/api/other`)).status).toBe(404);
  expect((await fetch(`${api.url}/api/hello`, { method: 'HEAD' })).status).toBe(200);
  expect(api.problems).toEqual([
    expect.stringContaining('scripted A-1, attempt 1, after its 1 turns: '),
    expect.stringContaining('scripted A-1, attempt 2, the agent was not to be started again: '),
    expect.stringContaining('scripted B: # Task B: do that'),
    expect.stringContaining('scripted plan: Write the requirements'),
    'nobody has scripted GET /api/other',
  ]);
});

test('[FL-03] the same every time, with tokens that are known', async () => {
  api.scriptAlways('A-1', [costing({ input: 12, output: 3 }, say())]);
  for (const session of [FIRST, SECOND]) {
    const answer = await (await ask(TASK, { session, stream: false })).json();
    expect(answer).toMatchObject({ usage: { input_tokens: 12, output_tokens: 3 } });
  }
  expect(api.problems).toEqual([]);
});

test('[FL-03] errors, and connections that end', async () => {
  api.script('A-1', [fail(429, { retryAfter: 7 }), cut('half'), lasting(fail(529))]);
  const limited = await ask(TASK);
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '7']);
  expect(await limited.json()).toMatchObject({ type: 'error', error: { type: 'rate_limit_error' } });
  await expect((await ask(TASK)).text()).rejects.toThrow('terminated');
  expect([(await ask(TASK)).status, (await ask(TASK)).status]).toEqual([529, 529]);
  expect([api.unasked(), api.problems]).toEqual([[], []]);
});

test('[FL-03] an answer begins, and goes on when the test says so', async () => {
  const hold = new Hold();
  api.script('A-1', [held(hold, bash('true'))]);
  const response = await ask(TASK);
  await hold.asked;
  expect(response.status).toBe(200);
  hold.release();
  expect((await eventsOf(response)).at(-1)?.type).toBe('message_stop');
});
