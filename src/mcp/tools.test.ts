import type { Client } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { addFixturesTo } from '../../test/support/conformance/fixtures.ts';
import { McpHarness, WAYS, call, run } from '../../test/support/mcp-client.ts';
import { HotcellError } from '../core/errors.ts';

const TOOLS = [
  'cancel_run',
  'create_session',
  'delete_snippet',
  'destroy_session',
  'get_run',
  'get_snippet',
  'grant_permission',
  'list_files',
  'list_permissions',
  'list_sessions',
  'list_snippets',
  'read_file',
  'revoke_permission',
  'run_code',
  'save_snippet',
  'write_file',
];
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';

async function openSession(client: Client): Promise<string> {
  const { structured } = await call(client, 'create_session');
  return String(structured['session_id']);
}

test.each(WAYS)(
  '[MC-01] over %s, %s: the tools are there, described, with honest hints',
  async (way, era) => {
    await using harness = await McpHarness.start();
    const client = await harness.connect(way, { era });
    expect(client.getNegotiatedProtocolVersion()).toBe(era === 'legacy' ? '2025-11-25' : '2026-07-28');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name).toSorted()).toEqual(TOOLS);
    for (const { name, title, description = '', annotations, inputSchema, outputSchema } of tools) {
      expect([name, title !== undefined, outputSchema?.type]).toEqual([name, true, 'object']);
      expect(description.length).toBeGreaterThan(20);
      expect(inputSchema).toMatchObject({ additionalProperties: false });
      const reads = /^(get|list|read)_/.test(name);
      expect([name, annotations?.readOnlyHint]).toEqual([name, reads]);
    }
  },
);

test.each(WAYS)(
  '[MC-01] over %s, %s: the whole result is in the text and in the structure',
  async (way, era) => {
    await using harness = await McpHarness.start();
    const client = await harness.connect(way, { era });
    const code = 'install zod\nprint hello\nwarn careful\nexit 3';
    const { reply, text, failed } = await run(client, { code, session_id: await openSession(client) });
    expect(reply).toMatchObject({
      success: false,
      status: 'error',
      exitCode: 3,
      stdout: 'hello\n',
      stderr: 'careful\n',
      durationMs: 12,
      cell: 'cell_1',
      installed: [{ name: 'zod', version: '1.0.0' }],
    });
    expect(failed).toBe(true);
    const parts = [
      'error',
      'exit code 3',
      'hello',
      'careful',
      '12 ms',
      'cell_1',
      'zod@1.0.0 from registry.test',
    ];
    for (const part of [...parts, reply.run_id, String(reply.session_id)]) expect(text).toContain(part);

    const good = await run(client, { code: 'print 1' });
    expect([good.failed, good.reply.success, good.reply.status]).toEqual([false, true, 'ok']);
  },
);

test('[MC-01] arguments reach the run, and the timeout of older clients too', async () => {
  await using harness = await McpHarness.start();
  const client = await harness.connect('stdio', { era: 'modern' });
  const files = [{ path: 'a.bin', content: 'AAE=', encoding: 'base64' }];
  const given = {
    code: 'read',
    stdin: 'from stdin',
    files,
    packages: ['zod@3'],
    snippets: ['mine'],
    timeout: 500,
  };
  const { reply } = await run(client, given);
  expect(reply.stdout).toBe('from stdin');
  const request = harness.workbenches.all[0]?.started[0]?.request;
  expect(request).toMatchObject({
    language: 'typescript',
    packages: ['zod@3'],
    snippets: ['mine'],
    timeoutMs: 500,
  });
  expect([...(request?.files[0]?.content ?? [])]).toEqual([0, 1]);
});

test.each(['timeout', 'memory', 'cancelled', 'failed'])(
  '[MC-01] a run that ended as %s is an error',
  async (status) => {
    await using harness = await McpHarness.start();
    const client = await harness.connect('stdio', { era: 'legacy' });
    const { reply, failed } = await run(client, { code: `print before\nend ${status}` });
    expect([reply.status, reply.stdout, reply.exitCode, failed]).toEqual([
      status,
      'before\n',
      undefined,
      true,
    ]);
  },
);

test('[MC-01] long output is cut in the middle, and the whole is a resource', async () => {
  await using harness = await McpHarness.start();
  const client = await harness.connect('stdio', { era: 'modern' });
  const { reply, text, content } = await run(client, { code: 'print first\nflood 100000\nprint last' });
  expect(reply.stdoutBytes).toBe(100_000 + 11);
  expect(Buffer.byteLength(reply.stdout)).toBeLessThan(17_000);
  expect(Buffer.byteLength(text)).toBeLessThan(20_000);
  expect(reply.stdout).toMatch(/^first\n[^]*last\n$/);
  expect(reply.stdoutCutBytes).toBeGreaterThan(80_000);
  const uri = `run://${reply.run_id}/stdout`;
  expect(text).toContain(uri);
  expect(content).toContainEqual(expect.objectContaining({ type: 'resource_link', uri }));
  const whole = await client.readResource({ uri });
  expect(whole.contents[0]).toMatchObject({ text: expect.stringMatching(/^first\né{50000}last\n$/) });
  const result = await client.readResource({ uri: `run://${reply.run_id}/result` });
  expect(JSON.parse(String(Reflect.get(result.contents[0] ?? {}, 'text')))).toMatchObject({
    stdoutCutBytes: 0,
    status: 'ok',
  });
});

test('[MC-01] images come as images if they are some, and every changed file as a link', async () => {
  await using harness = await McpHarness.start();
  const client = await harness.connect('stdio', { era: 'modern' });
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>').toString('base64');
  const code = `file a.png ${PNG}\nfile lie.png ${svg}\nfile b.svg ${svg}\nfile sub/c d.txt aGk=`;
  const { content, reply } = await run(client, { code: code.replace('sub/c d', 'sub/c%20d') });
  expect(content.filter(({ type }) => type === 'image')).toEqual([
    { type: 'image', data: PNG, mimeType: 'image/png' },
  ]);
  expect(content.filter(({ type }) => type === 'resource')).toHaveLength(1);
  const links = content.filter(({ type }) => type === 'resource_link');
  expect(links).toHaveLength(4);
  const last = links.at(-1);
  const uri = last?.type === 'resource_link' ? last.uri : '';
  expect(uri).toBe(`session://${String(reply.session_id)}/files/sub/c%2520d.txt`);
  expect((await client.readResource({ uri })).contents[0]).toMatchObject({ text: 'hi' });
});

test.each(WAYS)('[MC-01] over %s, %s: files are written, listed and read', async (way, era) => {
  await using harness = await McpHarness.start();
  const client = await harness.connect(way, { era });
  const session = { session_id: await openSession(client) };
  const written = await call(client, 'write_file', { ...session, path: 'a.txt', content: 'hi' });
  expect(written.structured).toEqual({ ...session, path: 'a.txt', sizeBytes: 2 });
  const bytes = { path: 'b.bin', content: '/wA=', encoding: 'base64' };
  await call(client, 'write_file', { ...session, ...bytes });
  const listed = await call(client, 'list_files', session);
  expect(listed.structured['entries']).toHaveLength(2);
  expect(listed.text).toContain('b.bin');
  expect((await call(client, 'read_file', { ...session, path: 'a.txt' })).structured).toMatchObject({
    content: 'hi',
    encoding: 'utf8',
  });
  expect((await call(client, 'read_file', { ...session, path: 'b.bin' })).structured).toMatchObject(bytes);
  const missing = await call(client, 'read_file', { ...session, path: 'c' });
  expect([missing.failed, missing.text]).toEqual([true, expect.stringContaining('FILE_NOT_FOUND')]);
});

test.each(WAYS)('[MC-15] over %s, %s: snippets are saved, found, and removed', async (way, era) => {
  await using harness = await McpHarness.start();
  const client = await harness.connect(way, { era });
  await call(client, 'save_snippet', { name: 'mine', code: 'export const a = 1;' });
  expect((await call(client, 'list_snippets')).structured).toEqual({
    snippets: [{ name: 'mine', description: 'scripted' }],
  });
  expect((await call(client, 'get_snippet', { name: 'mine' })).text).toContain('export const a = 1;');
  expect((await call(client, 'delete_snippet', { name: 'mine' })).structured).toEqual({
    name: 'mine',
    deleted: true,
  });
  const gone = await call(client, 'get_snippet', { name: 'mine' });
  expect([gone.failed, gone.text]).toEqual([true, expect.stringContaining('SNIPPET_UNKNOWN')]);
});

test('[MC-01] what this server can do is a resource, and there are two prompts', async () => {
  await using harness = await McpHarness.start();
  const client = await harness.connect('stdio', { era: 'modern' });
  const { contents } = await client.readResource({ uri: 'runner://capabilities' });
  expect(JSON.parse(String(Reflect.get(contents[0] ?? {}, 'text')))).toMatchObject({
    mode: 'preload',
    waitMs: 10_000,
  });
  const { prompts } = await client.listPrompts();
  expect(prompts.map(({ name }) => name)).toEqual(['write_script', 'debug_run']);
  const { reply } = await run(client, { code: 'warn broken\nexit 1' });
  const debug = await client.getPrompt({ name: 'debug_run', arguments: { run_id: reply.run_id } });
  expect(JSON.stringify(debug.messages)).toContain('broken');
  const { completion } = await client.complete({
    ref: { type: 'ref/prompt', name: 'debug_run' },
    argument: { name: 'run_id', value: 'run_' },
  });
  expect(completion.values).toEqual([reply.run_id]);
});

const HOSTILE: readonly (readonly [string, string, unknown])[] = [
  ['code that is no text', 'run_code', { code: 7 }],
  ['no code', 'run_code', {}],
  ['an unknown argument', 'run_code', { code: '', shell: true }],
  ['NUL in code', 'run_code', { code: 'a\0b' }],
  ['huge code', 'run_code', { code: 'x'.repeat(1_000_001) }],
  ['a path that leaves', 'write_file', { path: '../x', content: '' }],
  ['an absolute path', 'read_file', { path: '/etc/passwd' }],
  ['NUL in a path', 'write_file', { path: 'a\0b', content: '' }],
  ['content that is no base64', 'write_file', { path: 'a', content: '*', encoding: 'base64' }],
  ['a time before now', 'run_code', { code: '', timeout_ms: -1 }],
  [
    'too many files',
    'run_code',
    { code: '', files: Array.from({ length: 101 }, () => ({ path: 'a', content: '' })) },
  ],
  ['a handle that is a path', 'list_files', { session_id: '../../etc' }],
  ['an empty handle', 'list_files', { session_id: '' }],
  ['an unknown handle', 'run_code', { code: '', session_id: 'bench_0' }],
  ['an unknown run', 'get_run', { run_id: 'run_0' }],
  ['a permission of no kind', 'grant_permission', { type: 'all' }],
  ['a permission without its host', 'grant_permission', { type: 'http' }],
  ['a permission of two kinds', 'grant_permission', { type: 'env', variables: ['A'], host: 'a' }],
  ['too many elements', 'run_code', { code: '', packages: Array.from({ length: 20_000 }, () => 'a') }],
];

test.each(HOSTILE)(
  '[MC-01] %s is an error of the tool, and the next call works',
  async (_name, tool, given) => {
    await using harness = await McpHarness.start();
    const client = await harness.connect('stdio', { era: 'modern' });
    const { failed, text } = await call(client, tool, given as Record<string, unknown>);
    expect([failed, text.length > 10]).toEqual([true, true]);
    expect(harness.workbenches.all.flatMap(({ started }) => started)).toEqual([]);
    expect((await run(client, { code: 'print 1' })).reply.stdout).toBe('1\n');
  },
);

test('[MC-01] addresses of nothing are not found', async () => {
  await using harness = await McpHarness.start();
  const client = await harness.connect('stdio', { era: 'modern' });
  const { reply } = await run(client, { code: '' });
  const session = String(reply.session_id);
  for (const uri of [
    'run://run_0/stdout',
    `run://${reply.run_id}/secrets`,
    'run://%00/stdout',
    `session://${session}/files/nothing`,
    `session://${session}/files/..%2f..%2fetc%2fpasswd`,
    'session://bench_0/files/a',
    'file:///etc/passwd',
    'run://%E0%A4%A/stdout',
  ])
    await expect(client.readResource({ uri })).rejects.toMatchObject({ code: -32_602 });
});

test('[MC-01] a failure of ours is told with what to do, and the next call tries again', async () => {
  await using harness = await McpHarness.start();
  const client = await harness.connect('stdio', { era: 'modern' });
  harness.workbenches.failure = new HotcellError('DRIVER_UNAVAILABLE', 'nothing makes cells', {
    hint: 'Mend it.',
  });
  const { failed, text } = await run(client, { code: '' });
  expect([failed, text]).toEqual([true, 'DRIVER_UNAVAILABLE: nothing makes cells\nMend it.']);
  harness.workbenches.failure = undefined;
  expect((await run(client, { code: '' })).reply.status).toBe('ok');
});

test('[MC-14] nothing of the conformance suite is served, unless a test adds it', async () => {
  await using plain = await McpHarness.start();
  await using fitted = await McpHarness.start();
  addFixturesTo(fitted.door);
  const names = async (harness: McpHarness): Promise<string[]> => {
    const client = await harness.connect('stdio', { era: 'legacy' });
    const [{ tools }, { resources }, { prompts }, { resourceTemplates }] = await Promise.all([
      client.listTools(),
      client.listResources(),
      client.listPrompts(),
      client.listResourceTemplates(),
    ]);
    const all = [...tools, ...prompts].map(({ name }) => name);
    const uris = [
      ...resources.map(({ uri }) => uri),
      ...resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    ];
    return [...all, ...uris, ...Object.keys(client.getServerCapabilities() ?? {})];
  };
  const isFixture = (name: string): boolean => /^(test|json_schema|logging)/.test(name);
  expect((await names(plain)).filter(isFixture)).toEqual([]);
  expect((await names(fitted)).filter(isFixture).length).toBeGreaterThan(30);
});
