import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../support/leftovers.ts';
import { call, makeClient, run } from '../support/mcp-client.ts';
import { MCP_ENTRY } from '../support/mcp-process.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-mcp-'));
  symlinkSync(join(ROOT, 'bun-runner-mcp'), join(folder, 'linked'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const HELLO = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
});
const HANG = JSON.stringify({
  jsonrpc: '2.0',
  id: 2,
  method: 'tools/call',
  params: { name: 'run_code', arguments: { code: 'hang' }, _meta: { progressToken: 1 } },
});

interface Talking {
  readonly child: ChildProcessWithoutNullStreams;
  readonly said: { stdout: string; stderr: string };
  readonly exited: Promise<unknown[]>;
}

function talk(program: string, args: readonly string[]): Talking {
  const child = spawn(program, args, { cwd: folder });
  const said = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()));
  child.stdin.write(`${HELLO}\n`);
  return { child, said, exited: once(child, 'close') };
}

/** A process with a session in which something runs. */
async function startBusy(): Promise<Talking> {
  const talking = talk(process.execPath, [MCP_ENTRY]);
  await waitFor('it answers', () => talking.said.stdout.includes('"serverInfo"'));
  talking.child.stdin.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}\n${HANG}\n`);
  await waitFor('it runs', () => talking.said.stdout.includes('running: '));
  return talking;
}

describe('hotcell mcp', () => {
  test.each([
    ['stdin ends', (child: ChildProcessWithoutNullStreams) => child.stdin.end()],
    ['SIGTERM comes', (child: ChildProcessWithoutNullStreams) => child.kill('SIGTERM')],
    ['SIGINT comes', (child: ChildProcessWithoutNullStreams) => child.kill('SIGINT')],
    ['nobody reads any more', (child: ChildProcessWithoutNullStreams) => child.stdout.destroy()],
  ])('[MC-09] closes everything and exits with 0 when %s', async (_when, stop) => {
    const { child, said, exited } = await startBusy();
    stop(child);
    // It notices a reader that left when it writes: the signs of life of the run do.
    expect(await exited).toEqual([0, null]);
    expect(said.stderr.trim().split('\n').at(-1)).toBe('{"closed":true,"opened":1,"left":0}');
  });

  test('[MC-01] says nothing on stdout but the protocol', async () => {
    const { child, said, exited } = await startBusy();
    child.stdin.write('this is no message\n{"jsonrpc":"2.0"}\n[]\n\0\n{"id":{}}\n');
    child.stdin.write('{"jsonrpc":"2.0","id":3,"method":"tools/list"}\n');
    await waitFor('it still answers', () => /"id":3[,}]/.test(said.stdout));
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
    for (const line of said.stdout.trim().split('\n'))
      expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
  });

  test.each(['hotcell', 'bun-runner-mcp', 'linked'])(
    '[MC-01] answers before it has anything to run code with, as %s',
    async (name) => {
      const [program, args] =
        name === 'linked' ? [join(folder, name), []] : [join(ROOT, name), name === 'hotcell' ? ['mcp'] : []];
      const { child, said, exited } = talk(program, args);
      await waitFor('it answers', () => said.stdout.endsWith('\n'));
      expect(JSON.parse(said.stdout)).toMatchObject({ id: 1, result: { serverInfo: { name: 'hotcell' } } });
      child.stdin.end();
      expect(await exited).toEqual([0, null]);
    },
  );

  test.each(['legacy', 'modern'] as const)('[MC-01] serves a client of the SDK, %s', async (era) => {
    const client = makeClient({ era, answer: () => ({ action: 'accept', content: { decision: 'allow' } }) });
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [MCP_ENTRY], stderr: 'ignore' }),
    );
    const { reply } = await run(client, { code: 'fetch a.test' });
    expect(reply.stdout).toBe('reached a.test\n');
    const { structured } = await call(client, 'list_permissions');
    expect(structured).toMatchObject({ session_id: reply.session_id, permissions: [{ host: 'a.test' }] });
    await client.close();
  });

  test('[MC-02] a mode that there is not is refused, with the name of the variable', async () => {
    const child = spawn(join(ROOT, 'hotcell'), ['mcp'], { env: { ...process.env, EXECUTION_MODE: 'vm' } });
    let words = '';
    child.stderr.on('data', (chunk: Buffer) => (words += chunk.toString()));
    expect(await once(child, 'close')).toEqual([78, null]);
    expect(words).toMatch(/environment EXECUTION_MODE.*preload.*container/);
  });
});
