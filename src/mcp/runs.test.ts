import { hash as hashOf } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { waitFor } from '../../test/support/leftovers.ts';
import { McpHarness, WAYS, call, run } from '../../test/support/mcp-client.ts';
import type { RunReply } from '../wire/run-code.ts';

describe.each(WAYS)('over %s, %s', (way, era) => {
  test('[MC-12] a run that takes longer than the wait goes on, can be asked for and cancelled', async () => {
    await using harness = await McpHarness.start();
    const client = await harness.connect(way, { era });
    const { reply, failed, text } = await run(client, { code: 'print begun\nhang', wait_ms: 20 });
    expect([reply.status, reply.success, failed, reply.stdout]).toEqual(['running', false, false, 'begun\n']);
    expect(text).toContain('get_run');
    const asked = await call(client, 'get_run', { run_id: reply.run_id, wait_ms: 0 });
    expect([asked.structured['status'], asked.failed]).toEqual(['running', false]);
    const cancelled = await call(client, 'cancel_run', {
      run_id: reply.run_id,
      session_id: String(reply.session_id),
    });
    expect([cancelled.structured['status'], cancelled.failed]).toEqual(['cancelled', false]);
    const after = await call(client, 'get_run', { run_id: reply.run_id });
    expect([after.structured['status'], after.failed]).toEqual(['cancelled', true]);
  });

  test('[MC-12] get_run waits for the end', async () => {
    await using harness = await McpHarness.start();
    const client = await harness.connect(way, { era });
    const { reply } = await run(client, { code: 'hang', wait_ms: 0 });
    const asking = call(client, 'get_run', { run_id: reply.run_id });
    const [started] = harness.workbenches.all.flatMap((one) => one.started);
    await waitFor('the run has begun', () => started?.phase === 'running');
    started?.end('ok', { stdout: 'late\n' });
    expect((await asking).structured).toMatchObject({ status: 'ok', stdout: 'late\n' });
  });

  test('[MC-12] progress tells phases and output, in growing figures', async () => {
    await using harness = await McpHarness.start();
    const client = await harness.connect(way, { era });
    const told: { progress: number; message?: string | undefined }[] = [];
    const running = run(client, { code: 'hang' }, { onprogress: (progress) => told.push(progress) });
    await waitFor('it runs', () => told.some(({ message }) => message?.startsWith('running') === true));
    const [started] = harness.workbenches.all.flatMap((one) => one.started);
    for (let line = 0; line < 1000; line += 1) started?.print('stdout', `line ${line}\n`);
    await waitFor('output is told', () => told.some(({ message }) => message?.includes('line 999') === true));
    started?.end('ok');
    await running;
    const figures = told.map(({ progress }) => progress);
    expect(figures).toEqual([...new Set(figures)].toSorted((a, b) => a - b));
    // Throttled: not one for every line.
    expect(figures.length).toBeLessThan(20);
    expect(started?.listeners).toBe(0);
  });

  test('[MC-12] a client that takes its call back ends the run', async () => {
    await using harness = await McpHarness.start();
    const client = await harness.connect(way, { era });
    const stop = new AbortController();
    const running = run(client, { code: 'hang' }, { signal: stop.signal });
    const started = () => harness.workbenches.all.flatMap((one) => one.started)[0];
    await waitFor('it runs', () => started()?.phase === 'running');
    stop.abort();
    await expect(running).rejects.toThrow(/abort/i);
    await waitFor('it is cancelled', () => started()?.phase === 'ended');
    expect((await started()?.result)?.status).toBe('cancelled');
    await waitFor('nobody listens', () => started()?.listeners === 0);
    if (era === 'modern' && way === 'http')
      await waitFor('its session is gone', () => harness.workbenches.all[0]?.closed === true);
  });

  test('[MC-12] taking back a question about a run does not end it', async () => {
    await using harness = await McpHarness.start();
    const client = await harness.connect(way, { era });
    const { reply } = await run(client, { code: 'hang', wait_ms: 0 });
    const [started] = harness.workbenches.all.flatMap((one) => one.started);
    const stop = new AbortController();
    const asking = call(client, 'get_run', { run_id: reply.run_id }, { signal: stop.signal });
    await waitFor('it runs', () => started?.phase === 'running');
    stop.abort();
    await expect(asking).rejects.toThrow(/abort/i);
    expect((await call(client, 'get_run', { run_id: reply.run_id, wait_ms: 0 })).structured['status']).toBe(
      'running',
    );
    expect(started?.cancelled).toBe(0);
  });
});

test('[MC-12] whoever waits for a run when the server stops is told so', async () => {
  await using harness = await McpHarness.start();
  const client = await harness.connect('http', { era: 'modern' });
  const running = run(client, { code: 'hang' });
  running.catch(() => {});
  await waitFor('it runs', () => harness.workbenches.all[0]?.started[0]?.phase === 'running');
  await harness.http.close();
  await expect(running).rejects.toMatchObject({
    message: expect.stringContaining('SHUTTING_DOWN: the server is stopping') as unknown,
    status: 503,
  });
});

test.each([
  ['stdio', 'legacy'],
  ['stdio', 'modern'],
  ['http', 'legacy'],
] as const)(
  '[MC-08] over %s, %s: calls without a session share one, also two first ones at once',
  async (way, era) => {
    await using harness = await McpHarness.start();
    const client = await harness.connect(way, { era });
    expect(harness.workbenches.all).toEqual([]);
    const both = await Promise.all([run(client, { code: 'print 1' }), run(client, { code: 'print 2' })]);
    const third = await run(client, { code: 'print 3' });
    const ids = [...both, third].map(({ reply }) => reply.session_id);
    expect(new Set(ids).size).toBe(1);
    expect(harness.workbenches.all).toHaveLength(1);
  },
);

test('[MC-08] a session that ended meanwhile is replaced within the call', async () => {
  await using harness = await McpHarness.start();
  const client = await harness.connect('stdio', { era: 'modern' });
  const first = await run(client, { code: '' });
  await harness.workbenches.all[0]?.close();
  const second = await run(client, { code: 'print 1' });
  expect(second.reply.stdout).toBe('1\n');
  expect(second.reply.session_id).not.toBe(first.reply.session_id);
  const named = await run(client, { code: '', session_id: String(first.reply.session_id) });
  expect([named.failed, named.text]).toEqual([true, expect.stringContaining('create_session')]);
});

test('[MC-09] over http, modern: a run without a session has one of its own, which ends with it', async () => {
  await using harness = await McpHarness.start();
  const client = await harness.connect('http', { era: 'modern' });
  const { reply, content, text } = await run(client, { code: 'file a.txt aGk=\nprint 1\nflood 60000' });
  expect([reply.status, reply.session_id]).toEqual(['ok', undefined]);
  // Nothing to link to.
  expect(content.filter(({ type }) => type === 'resource_link')).toEqual([]);
  expect(text).not.toContain('run://');
  await waitFor('it is closed', () => harness.workbenches.all.every(({ closed }) => closed));
  expect(harness.workbenches.all).toHaveLength(1);

  const long = await run(client, { code: 'hang', wait_ms: 10 });
  const [, kept] = harness.workbenches.all;
  expect([long.reply.session_id, kept?.closed]).toEqual([kept?.id, false]);
  for (const tool of ['list_files', 'list_permissions', 'destroy_session']) {
    const { failed, text: words } = await call(client, tool);
    expect([failed, words]).toEqual([true, expect.stringContaining('create_session')]);
  }
});

test.each(WAYS)('[MC-09] over %s, %s: a session is made, listed, used and destroyed', async (way, era) => {
  await using harness = await McpHarness.start();
  const client = await harness.connect(way, { era });
  const { structured } = await call(client, 'create_session');
  const id = String(structured['session_id']);
  const first = await run(client, { code: 'file a.txt aGk=', session_id: id });
  expect(first.reply.session_id).toBe(id);
  expect((await call(client, 'list_sessions')).structured['sessions']).toMatchObject([
    { session_id: id, runs: 1 },
  ]);
  const read = await call(client, 'read_file', { session_id: id, path: 'a.txt' });
  expect(read.structured['content']).toBe('hi');
  expect((await call(client, 'destroy_session', { session_id: id })).structured['destroyed']).toBe(true);
  expect(harness.workbenches.all[0]?.closed).toBe(true);
  const gone = await run(client, { code: '', session_id: id });
  expect([gone.failed, gone.text]).toEqual([true, expect.stringContaining('WORKBENCH_UNKNOWN')]);
});

describe('the sessions of the older protocol', () => {
  const initialize = async (harness: McpHarness, key?: string): Promise<{ status: number; id: string }> => {
    const answer = await harness.server.ask('/mcp', {
      method: 'POST',
      headers: { ...HEADERS, ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
      }),
    });
    return { status: answer.status, id: String(answer.headers['mcp-session-id']) };
  };
  const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const list = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
  const ask = async (harness: McpHarness, id: string, method = 'POST', message = list): Promise<number> => {
    const headers = { ...HEADERS, 'mcp-session-id': id };
    const body = method === 'POST' ? { body: message } : {};
    return (await harness.server.ask('/mcp', { method, headers, ...body })).status;
  };

  test('[MC-09] DELETE ends one, with its cell', async () => {
    await using harness = await McpHarness.start();
    const client = await harness.connect('http', { era: 'legacy' });
    const { reply } = await run(client, { code: 'hang', wait_ms: 0 });
    expect(reply.status).toBe('running');
    expect(await ask(harness, String(client.transport?.sessionId), 'DELETE')).toBe(200);
    await waitFor('its workbench is closed', () => harness.workbenches.all[0]?.closed === true);
    await expect(run(client, { code: '' })).rejects.toThrow('Session not found');
  });

  test('[MC-09] an idle one ends, with its cell; one with an open stream does not', async () => {
    await using harness = await McpHarness.start({ idleMs: 200 });
    const watching = await harness.connect('http', { era: 'legacy' });
    await run(watching, { code: '' });
    const { id } = await initialize(harness);
    const made =
      '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_code","arguments":{"code":""}}}';
    expect(await ask(harness, id, 'POST', made)).toBe(200);
    await waitFor('its workbench is closed', () => harness.workbenches.all[1]?.closed === true);
    expect(await ask(harness, id)).toBe(404);
    expect((await run(watching, { code: 'print 1' })).reply.stdout).toBe('1\n');
    expect(harness.workbenches.all.map(({ closed }) => closed)).toEqual([false, true]);
  });

  test('[MC-09] there are no more than allowed: the idle one that was used longest ago makes room', async () => {
    await using harness = await McpHarness.start({ sessions: 2 });
    const first = await initialize(harness);
    const second = await initialize(harness);
    expect(await ask(harness, first.id)).toBe(200);
    const third = await initialize(harness);
    expect([await ask(harness, second.id), await ask(harness, first.id)]).toEqual([404, 200]);
    expect(await ask(harness, third.id)).toBe(200);
  });

  test('[MC-09] one that is in use makes room for nobody', async () => {
    await using harness = await McpHarness.start({ sessions: 1 });
    const client = await harness.connect('http', { era: 'legacy' });
    const running = run(client, { code: 'hang' });
    await waitFor('it runs', () => harness.workbenches.all[0]?.started[0]?.phase === 'running');
    expect((await initialize(harness)).status).toBe(429);
    harness.workbenches.all[0]?.started[0]?.end('ok');
    expect((await running).reply.status).toBe('ok');
  });

  test('[MC-09] without a handshake there is none, and a wrong id is unknown', async () => {
    await using harness = await McpHarness.start();
    const body = { method: 'POST', headers: HEADERS, body: list };
    expect((await harness.server.ask('/mcp', body)).status).toBe(400);
    expect(await ask(harness, 'x')).toBe(404);
    expect(await ask(harness, 'x', 'GET')).toBe(404);
    expect(await ask(harness, 'x', 'DELETE')).toBe(404);
    expect((await harness.server.ask('/mcp', { headers: HEADERS })).status).toBe(405);
  });
});

test.each(['legacy', 'modern'] as const)(
  '[MC-09] over http, %s: a stop of the server ends what runs, and everything is closed',
  async (era) => {
    await using harness = await McpHarness.start();
    const client = await harness.connect('http', { era });
    const running = run(client, { code: 'hang' }).catch((error: unknown) => error);
    await waitFor('it runs', () => harness.workbenches.all[0]?.started[0]?.phase === 'running');
    await Promise.all([harness.server.app.close(), harness.http.close()]);
    await harness.door.close();
    expect(harness.workbenches.closed).toBe(true);
    expect(harness.workbenches.all[0]?.started[0]?.phase).toBe('ended');
    await client.close();
    await running;
  },
);

describe('tenants', () => {
  const tenant = (key: string) => ({ keySha256: hashOf('sha256', key, 'hex'), quotas: {} });
  const tenants = { anna: tenant('key-of-anna'), bert: tenant('key-of-bert') };

  test.each(['legacy', 'modern'] as const)(
    '[MC-09] over http, %s: nobody sees anything of another',
    async (era) => {
      await using harness = await McpHarness.start({ tenants });
      const anna = await harness.connect('http', { era, key: 'key-of-anna' });
      const bert = await harness.connect('http', { era, key: 'key-of-bert' });
      const { structured } = await call(anna, 'create_session');
      const session = { session_id: String(structured['session_id']) };
      const { reply } = await run(anna, { code: 'print secret\nhang', wait_ms: 0, ...session });
      await call(anna, 'save_snippet', { name: 'mine', code: 'x' });
      const tries = [
        ['run_code', { code: '', ...session }],
        ['get_run', { run_id: reply.run_id }],
        ['get_run', { run_id: reply.run_id, ...session }],
        ['cancel_run', { run_id: reply.run_id }],
        ['list_files', session],
        ['list_permissions', session],
        ['destroy_session', session],
        ['grant_permission', { type: 'http', host: 'a.test', ...session }],
        ['get_snippet', { name: 'mine' }],
      ] as const;
      for (const [tool, given] of tries)
        expect([tool, (await call(bert, tool, given)).failed]).toEqual([tool, true]);
      expect((await call(bert, 'list_sessions')).structured).toEqual({ sessions: [] });
      expect((await call(bert, 'list_snippets')).structured).toEqual({ snippets: [] });
      await expect(bert.readResource({ uri: `run://${reply.run_id}/stdout` })).rejects.toThrow(
        'there is no such run',
      );
      expect((await call(anna, 'get_run', { run_id: reply.run_id, wait_ms: 0 })).structured).toMatchObject({
        status: 'running',
        stdout: 'secret\n',
      } satisfies Partial<RunReply>);
    },
  );

  test('[MC-09] the session of the older protocol is of the tenant that made it', async () => {
    await using harness = await McpHarness.start({ tenants });
    const anna = await harness.connect('http', { era: 'legacy', key: 'key-of-anna' });
    const { sessionId } = anna.transport ?? {};
    const asBert = (method: string) =>
      harness.server.ask('/mcp', {
        method,
        headers: {
          authorization: 'Bearer key-of-bert',
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-session-id': String(sessionId),
        },
        ...(method === 'POST' ? { body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' } : {}),
      });
    for (const method of ['POST', 'GET', 'DELETE']) expect((await asBert(method)).status).toBe(404);
    expect((await anna.listTools()).tools.length).toBeGreaterThan(10);
    expect((await harness.server.ask('/mcp', { method: 'DELETE' })).status).toBe(401);
  });
});
