import { describe, expect, test } from 'vitest';
import { waitFor } from '../../test/support/leftovers.ts';
import { McpHarness, WAYS, call, run } from '../../test/support/mcp-client.ts';
import { UNGRANTABLE_HOST } from './scripted-workbench.double.ts';

const ALLOW = { action: 'accept' as const, content: { decision: 'allow' } };

describe.each(WAYS)('over %s, %s', (way, era) => {
  test('[MC-04] whoever cannot be asked gets a denial with the exact call that allows it', async () => {
    await using harness = await McpHarness.start();
    const client = await harness.connect(way, { era });
    const { structured } = await call(client, 'create_session');
    const session = { session_id: String(structured['session_id']) };
    const denied = await run(client, { code: 'fetch a.test', ...session });
    expect([denied.failed, denied.reply.status]).toEqual([true, 'denied']);
    const [denial] = denied.reply.denials;
    expect(denial?.grant?.arguments).toEqual({ type: 'http', host: 'a.test', methods: ['GET'], ...session });
    expect(denied.text).toContain(`call grant_permission with ${JSON.stringify(denial?.grant?.arguments)}`);

    const granted = await call(client, 'grant_permission', denial?.grant?.arguments);
    expect(granted.structured['permissions']).toEqual([{ type: 'http', host: 'a.test', methods: ['GET'] }]);
    const allowed = await run(client, { code: 'fetch a.test', ...session });
    expect([allowed.failed, allowed.reply.stdout]).toEqual([false, 'reached a.test\n']);

    const revoked = await call(client, 'revoke_permission', denial?.grant?.arguments);
    expect(revoked.structured).toEqual({ ...session, permissions: [], revoked: true });
    expect((await call(client, 'list_permissions', session)).structured['permissions']).toEqual([]);
    expect((await run(client, { code: 'fetch a.test', ...session })).reply.status).toBe('denied');
  });

  test('[MC-04] whoever can be asked is asked, is shown exactly what, and the code runs again', async () => {
    await using harness = await McpHarness.start();
    const questions: string[] = [];
    const client = await harness.connect(way, {
      era,
      answer: ({ message }) => {
        questions.push(message);
        return ALLOW;
      },
    });
    const { reply, failed } = await run(client, { code: 'fetch a.test\nfetch b.test' });
    expect([failed, reply.stdout]).toEqual([false, 'reached a.test\nreached b.test\n']);
    expect(questions).toEqual([
      expect.stringContaining('network: GET to a.test'),
      expect.stringContaining('network: GET to b.test'),
    ]);
    const [workbench] = harness.workbenches.all;
    expect(harness.workbenches.all).toHaveLength(1);
    expect(workbench?.permissions.list()).toHaveLength(2);
    // Where it was for this call only, the permission is gone with it.
    if (way === 'http' && era === 'modern') await waitFor('it is closed', () => workbench?.closed === true);
  });

  test.each([
    ['declined', { action: 'decline' as const }],
    ['cancelled', { action: 'cancel' as const }],
    ['denied', { action: 'accept' as const, content: { decision: 'deny' } }],
    ['answered with nonsense', { action: 'accept' as const, content: { decision: 'sure', allow: true } }],
  ])('[MC-04] a question that was %s grants nothing', async (_how, answer) => {
    await using harness = await McpHarness.start();
    const client = await harness.connect(way, { era, answer: () => answer });
    const { reply, failed, text } = await run(client, { code: 'fetch a.test' }).catch(refused);
    expect([failed, reply.status]).toEqual([true, 'denied']);
    expect(text).toMatch(/did not allow|refused/);
    const [workbench] = harness.workbenches.all;
    expect(workbench?.permissions.list()).toEqual([]);
    expect(workbench?.started).toHaveLength(1);
  });

  test('[MC-04] the tool cannot be used to get around the person', async () => {
    await using harness = await McpHarness.start();
    let answer: { action: 'accept'; content: { decision: string } } | { action: 'decline' } = {
      action: 'decline',
    };
    const questions: string[] = [];
    const client = await harness.connect(way, {
      era,
      answer: ({ message }) => {
        questions.push(message);
        return answer;
      },
    });
    const { structured } = await call(client, 'create_session');
    const given = {
      session_id: String(structured['session_id']),
      type: 'env',
      variables: ['HOME', 'A\u202eB'],
    };
    const refusedGrant = await call(client, 'grant_permission', given);
    expect([refusedGrant.failed, refusedGrant.text]).toEqual([
      true,
      expect.stringContaining('PERMISSION_REFUSED'),
    ]);
    expect(questions).toEqual([expect.stringContaining('variables of the environment: HOME, A\ufffdB')]);
    expect(harness.workbenches.all[0]?.permissions.list()).toEqual([]);
    answer = ALLOW;
    expect((await call(client, 'grant_permission', given)).failed).toBe(false);
    expect(harness.workbenches.all[0]?.permissions.list()).toHaveLength(1);
  });
});

/** The older protocol checks an answer against the question, and refuses it as a whole. */
function refused(error: Error) {
  return { failed: true, reply: { status: 'denied' }, text: `refused: ${error.message}` };
}

test('[MC-04] what the operator lets nobody have stays denied, whatever the person says', async () => {
  await using harness = await McpHarness.start();
  const client = await harness.connect('stdio', { era: 'modern', answer: () => ALLOW });
  const { reply, text, failed } = await run(client, { code: `fetch ${UNGRANTABLE_HOST}` });
  expect([failed, reply.status]).toEqual([true, 'denied']);
  expect(text).toContain('the operator lets nobody reach it');
});

test('[MC-04] code that always finds something new to ask for is not asked about for ever', async () => {
  await using harness = await McpHarness.start();
  let questions = 0;
  const client = await harness.connect('stdio', {
    era: 'modern',
    answer: () => {
      questions += 1;
      return ALLOW;
    },
  });
  const code = Array.from({ length: 30 }, (_, index) => `fetch h${index}.test`).join('\n');
  expect((await run(client, { code })).reply.status).toBe('denied');
  expect(questions).toBe(4);
});

describe('an answer that was tampered with', () => {
  const META = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
  };
  const post = async (harness: McpHarness, params: Record<string, unknown>) => {
    const answer = await harness.server.ask('/mcp', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': String(params['name']),
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { ...params, _meta: META },
      }),
    });
    return answer.json() as { result?: Record<string, unknown>; error?: { code: number } };
  };
  const yes = { inputResponses: { permission: ALLOW } };
  const asked = { name: 'run_code', arguments: { code: 'fetch a.test' } };

  test.each([
    ['changed', (state: string) => ({ ...asked, requestState: `${state}x` })],
    ['made up', () => ({ ...asked, requestState: 'v1.e30.AAAA' })],
  ])('[MC-04] its state %s, it is refused', async (_how, change) => {
    await using harness = await McpHarness.start();
    const first = await post(harness, asked);
    expect(first.result?.['resultType']).toBe('input_required');
    const second = await post(harness, { ...change(String(first.result?.['requestState'])), ...yes });
    expect(second.error?.code).toBe(-32_602);
    expect(harness.workbenches.all[0]?.permissions.list()).toEqual([]);
  });

  test('[MC-04] given for other code, it is refused', async () => {
    await using harness = await McpHarness.start();
    const { result } = await post(harness, asked);
    const other = { name: 'run_code', arguments: { code: 'fetch a.test\nprint more' } };
    const second = await post(harness, { ...other, ...yes, requestState: result?.['requestState'] });
    expect(second.result?.['isError']).toBe(true);
    expect(harness.workbenches.all.flatMap(({ permissions }) => permissions.list())).toEqual([]);
    expect(harness.workbenches.all.flatMap(({ started }) => started)).toHaveLength(1);
  });

  test('[MC-04] given for run_code, it is none for grant_permission', async () => {
    await using harness = await McpHarness.start();
    const { result } = await post(harness, asked);
    const { result: session } = await post(harness, { name: 'create_session', arguments: {} });
    const given = { type: 'env', variables: ['*'], ...Object(session?.['structuredContent']) };
    const grant = { name: 'grant_permission', arguments: given };
    const second = await post(harness, { ...grant, ...yes, requestState: result?.['requestState'] });
    expect(second.result?.['isError']).toBe(true);
    expect(harness.workbenches.all.flatMap(({ permissions }) => permissions.list())).toEqual([]);
  });

  test('[MC-04] without a question before it, it is only a first call', async () => {
    await using harness = await McpHarness.start();
    const { result } = await post(harness, { ...asked, ...yes });
    expect(result?.['resultType']).toBe('input_required');
    expect(harness.workbenches.all.flatMap(({ permissions }) => permissions.list())).toEqual([]);
  });
});
