import type { Progress, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../support/leftovers.ts';
import { call, run, runToEnd } from '../support/mcp-client.ts';
import {
  CONTAINER,
  DOCKER,
  McpPlace,
  McpServer,
  PRELOAD,
  connectToUp,
  describeModes,
  isAlive,
} from '../support/mcp-server.ts';

/** No address may be reached, so that nothing can be installed. */
const OFFLINE = ['--set', 'sessions.egress.refuse=0.0.0.0/0,::/0'];
const ZOD = 'import { z } from "zod"; console.log(z.string().parse("parsed"), typeof z)';

describeModes([PRELOAD, CONTAINER, DOCKER], (mode) => {
  let place: McpPlace;
  let server: McpServer;
  beforeAll(async () => {
    place = new McpPlace();
    server = await McpServer.start(place, { mode });
  });
  afterAll(async () => {
    place.note();
    const { pid } = server;
    await server[Symbol.asyncDispose]();
    await place.untilNothingIsLeft([pid], mode);
    place[Symbol.dispose]();
  });

  test('[MC-01, MC-06, SC-04] code runs, and the reply has text and structure', async () => {
    const { reply, text, failed } = await run(server.client, { code: 'console.log("hello", 6 * 7)' });
    expect([failed, text]).toEqual([false, expect.stringContaining('hello 42')]);
    expect(reply).toMatchObject({
      success: true,
      status: 'ok',
      stdout: 'hello 42\n',
      stderr: '',
      exitCode: 0,
      limits: { cpus: 2, memoryBytes: 512 * 1024 * 1024, wallTimeMs: 30_000 },
      isolation: { driver: mode.driver },
      cell: expect.stringMatching(/\w/),
      denials: [],
      warnings: [],
    });
    expect(Object.values(reply.isolation?.enforcement ?? {})).not.toContain('nobody');
  });

  test.each([
    ['an error', 'throw new Error("boom")', { status: 'error', exitCode: 1 }, /boom/],
    ['another exit code', 'console.error("why"); process.exit(7)', { status: 'error', exitCode: 7 }, /why/],
    ['a syntax error', 'const = ;', { status: 'failed' }, /syntax/i],
  ])('[MC-01] isError for %s', async (_what, code, expected, words) => {
    const { reply, failed, text } = await run(server.client, { code });
    expect([failed, reply]).toEqual([true, expect.objectContaining({ success: false, ...expected })]);
    expect(text).toMatch(words);
  });

  test('[MC-08] every run of a session has the same cell, also two at once', async () => {
    const both = await Promise.all(
      [1, 2].map((word) => run(server.client, { code: `console.log(${word})` })),
    );
    expect(both.map(({ reply }) => reply.stdout)).toEqual(['1\n', '2\n']);
    expect(new Set(both.map(({ reply }) => reply.cell)).size).toBe(1);
  });

  test('[MC-06] a timeout says that it is one, and nothing of the code goes on', async () => {
    const { reply, failed } = await run(server.client, {
      code: 'console.log("begun"); for (;;);',
      timeout: 4000,
    });
    expect([failed, reply]).toEqual([
      true,
      expect.objectContaining({
        status: 'timeout',
        stdout: 'begun\n',
        exitCode: 124,
        message: 'timed out after 4 seconds',
      }),
    ]);
    expect((await run(server.client, { code: 'console.log("next")' })).reply.stdout).toBe('next\n');
  });

  test('[MC-06] memory beyond the limit ends the code, and says so', async () => {
    const code = 'const all = []; for (;;) all.push(new Uint8Array(16 << 20).fill(all.length % 250 + 1));';
    // Close to its limit the kernel drops pages of Bun itself and reads them again: with a busy disk for long.
    const { reply, failed } = await runToEnd(server.client, { code, timeout: 110_000 });
    expect([failed, reply]).toEqual([
      true,
      expect.objectContaining({ status: 'memory', message: expect.stringMatching(/memory/) }),
    ]);
    const next = await runToEnd(server.client, { code: 'console.log("next")' });
    expect(next.reply).toMatchObject({ status: 'ok', stdout: 'next\n' });
  });

  test('[MC-01] files go in and come out, and changes are told', async () => {
    await call(server.client, 'write_file', { path: 'in/data.txt', content: 'from outside' });
    const code = `const text = await Bun.file('in/data.txt').text();
await Bun.write('out.txt', text.toUpperCase()); console.log(await Bun.file('given.bin').bytes())`;
    const files = [{ path: 'given.bin', content: 'AAH/', encoding: 'base64' }];
    const { reply } = await run(server.client, { code, files });
    expect(reply).toMatchObject({ status: 'ok', filesChanged: [{ path: 'out.txt', sizeBytes: 12 }] });
    expect(reply.stdout).toContain('0, 1, 255');
    const { structured } = await call(server.client, 'read_file', { path: 'out.txt' });
    expect(structured).toMatchObject({ content: 'FROM OUTSIDE', encoding: 'utf8' });
    const listed = await call(server.client, 'list_files');
    expect(listed.structured['entries']).toEqual(
      expect.arrayContaining([expect.objectContaining({ name: 'out.txt', sizeBytes: 12 })]),
    );
    const missing = await call(server.client, 'read_file', { path: 'nothing.txt' });
    expect([missing.failed, missing.text]).toEqual([true, expect.stringContaining('nothing.txt')]);
    expect((await call(server.client, 'read_file', { path: '../../etc/passwd' })).failed).toBe(true);
  });

  test('[MC-01] stdin and another language', async () => {
    const code = 'import sys\nprint(sys.stdin.read().upper())';
    const { reply } = await run(server.client, { code, language: 'python', stdin: 'abc' });
    expect(reply).toMatchObject({ status: 'ok', stdout: 'ABC\n', language: 'python' });
    const unknown = await call(server.client, 'run_code', { code: '', language: 'cobol' });
    expect([unknown.failed, unknown.text]).toEqual([true, expect.stringMatching(/cobol.*python/s)]);
  });

  test('[MC-15] a snippet is saved, used, listed and deleted', async () => {
    const code = '/** @description doubles */\nexport const double = (n: number): number => n * 2;';
    await call(server.client, 'save_snippet', { name: 'double', code });
    const listed = await call(server.client, 'list_snippets');
    expect(listed.structured).toEqual({ snippets: [{ name: 'double', description: 'doubles' }] });
    const user = 'import { double } from "snippets/double"; console.log(double(21))';
    expect((await run(server.client, { code: user })).reply).toMatchObject({ status: 'ok', stdout: '42\n' });
    await call(server.client, 'delete_snippet', { name: 'double' });
    const { reply } = await run(server.client, { code: user });
    expect(reply).toMatchObject({ status: 'failed', message: expect.stringContaining('snippets/double') });
  });

  test('[MC-12] what takes longer than the wait is asked for later, and can be cancelled', async () => {
    const code = 'console.log("begun"); await Bun.sleep(600_000)';
    const { reply } = await run(server.client, { code, wait_ms: 1500, timeout_ms: 600_000 });
    expect(reply).toMatchObject({ status: 'running', success: false });
    const { run_id } = reply;
    const begun = async (): Promise<boolean> => {
      const { structured } = await call(server.client, 'get_run', { run_id, wait_ms: 0 });
      return structured['status'] === 'running' && structured['stdout'] === 'begun\n';
    };
    await waitFor('it has begun', begun);
    const cancelled = await call(server.client, 'cancel_run', { run_id });
    expect(cancelled.structured).toMatchObject({ status: 'cancelled', stdout: 'begun\n' });
    expect((await call(server.client, 'get_run', { run_id })).structured).toMatchObject({
      status: 'cancelled',
    });
    expect((await call(server.client, 'get_run', { run_id: 'run_nothing' })).failed).toBe(true);
  });

  test('[MC-12] a client that takes its call back ends the code', async () => {
    const seen: Progress[] = [];
    const marker = `.${Date.now() % 1e9}`;
    const abort = new AbortController();
    const code = `import subprocess, time
subprocess.Popen(["sleep", "600${marker}"])
print("begun", flush=True)
time.sleep(600)`;
    const asked = run(
      server.client,
      { code, language: 'python', timeout_ms: 600_000 },
      { signal: abort.signal, onprogress: (progress) => seen.push(progress) },
    );
    const said = (): string => seen.map(({ message }) => message).join('|');
    await expect.poll(said, { timeout: 60_000 }).toContain('running: begun');
    expect(isAlive(marker)).toBe(true);
    abort.abort();
    await expect(asked).rejects.toThrow(/abort|cancel/i);
    // A session has one turn: the next run would wait for ever.
    const next = await run(server.client, { code: 'console.log("next")' });
    expect(next.reply).toMatchObject({ status: 'ok', stdout: 'next\n' });
    await waitFor('nothing of it runs', () => !isAlive(marker));
  });

  test('[MC-08, MC-09] a session that was asked for is one of its own, until it is destroyed', async () => {
    const { structured } = await call(server.client, 'create_session');
    const session_id = String(structured['session_id']);
    await run(server.client, { code: 'await Bun.write("own.txt", "mine")', session_id });
    const own = 'console.log(await Bun.file("own.txt").exists())';
    expect((await run(server.client, { code: own, session_id })).reply).toMatchObject({
      session_id,
      stdout: 'true\n',
    });
    expect((await run(server.client, { code: own })).reply.stdout).toBe('false\n');
    const listed = await call(server.client, 'list_sessions');
    expect(JSON.stringify(listed.structured)).toContain(session_id);
    expect((await call(server.client, 'destroy_session', { session_id })).structured).toEqual({
      session_id,
      destroyed: true,
    });
    for (const handle of [session_id, 'wb_00000000000000000000000000000000']) {
      const gone = await call(server.client, 'run_code', { code: own, session_id: handle });
      expect([gone.failed, gone.text]).toEqual([true, expect.stringContaining('session')]);
    }
  });

  describe('packages', () => {
    test('[MC-10, MC-12] are installed before the run, and the client is told', async () => {
      const seen: Progress[] = [];
      const { reply } = await runToEnd(
        server.client,
        { code: ZOD },
        { onprogress: (progress) => seen.push(progress) },
      );
      expect(reply).toMatchObject({ status: 'ok', stdout: 'parsed object\n' });
      expect(reply.installed).toEqual([
        expect.objectContaining({ name: 'zod', direct: true, version: expect.stringMatching(/^\d/) }),
      ]);
      expect(seen.some(({ message }) => /zod/.test(message ?? ''))).toBe(true);
      const numbers = seen.map(({ progress }) => progress);
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    });

    test('[MC-10] a version that the code asks for is the one that it gets', async () => {
      const code =
        'import { z } from "zod@3.22.4"; import { version } from "zod/package.json"; console.log(version)';
      const { reply } = await runToEnd(server.client, { code });
      expect(reply).toMatchObject({ status: 'ok', stdout: '3.22.4\n' });
    });

    test('[MC-10] one that there is not is named, and nothing runs', async () => {
      const code = 'console.log("ran"); import "no-such-package-of-anybody-1f9c"';
      const { reply, failed, text } = await runToEnd(server.client, { code });
      expect([failed, reply]).toEqual([true, expect.objectContaining({ status: 'failed', stdout: '' })]);
      expect(reply.exitCode).toBeUndefined();
      expect(text).toContain('no-such-package-of-anybody-1f9c');
    });

    test('[MC-11] a later server needs no registry for what was installed', async () => {
      await using offline = await McpServer.start(place, { mode, args: OFFLINE });
      const { reply } = await run(offline.client, { code: ZOD });
      expect(reply).toMatchObject({ status: 'ok', stdout: 'parsed object\n', installed: [] });
      const other = await run(offline.client, { code: 'import "ms"; console.log("ran")' });
      expect(other.reply).toMatchObject({ status: 'failed', stdout: '' });
      expect(other.text).toContain('ms');
    });
  });
});

describeModes([PRELOAD, CONTAINER], (mode) => {
  test.each(['legacy', 'modern'] as const)(
    '[MC-01, MC-09] /mcp of hotcell up serves the same, %s',
    async (era) => {
      using place = new McpPlace();
      const up = await connectToUp(place, { mode, era });
      const { pid = 0 } = up.server.process;
      try {
        const { reply } = await run(up.client, { code: 'console.log("hello", process.cwd() !== "/")' });
        expect(reply).toMatchObject({
          status: 'ok',
          stdout: 'hello true\n',
          isolation: { driver: mode.driver },
        });
        place.note();
      } finally {
        await up[Symbol.asyncDispose]();
      }
      await place.untilNothingIsLeft([pid], mode);
    },
  );

  test('[MC-09, CX-15] an HTTP session that its client deletes takes its cell along; health has nothing to complain about', async () => {
    using place = new McpPlace();
    await using up = await connectToUp(place, { mode });
    const marker = `7${Date.now() % 1e9}`;
    const code = `import subprocess\nsubprocess.run(["sleep", "${marker}"])`;
    const given = { code, language: 'python', timeout_ms: 600_000, wait_ms: 0 };
    expect((await run(up.client, given)).reply.status).toBe('running');
    await waitFor('it runs', () => isAlive(marker));
    await (up.client.transport as StreamableHTTPClientTransport).terminateSession();
    await waitFor('nothing of it runs', () => !isAlive(marker));
    expect((await up.server.health()).status).toBe('ok');
  });
});
