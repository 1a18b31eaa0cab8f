import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { MANIFEST_SCHEMAS, getMcpConfigForManifest } from '@anthropic-ai/mcpb';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { SETTINGS } from '../../src/app/config/config-keys.ts';
import {
  ROOT,
  STDIO_CLIENTS,
  programOf,
  programOfClaudeAdd,
  remoteOf,
  type Program,
  type Surroundings,
} from '../support/client-configs.ts';
import { findProgram } from '../support/find-program.ts';
import { call, makeClient, run } from '../support/mcp-client.ts';
import { runTool } from '../support/mcp-process.ts';
import { NO_POOL } from '../support/mcp-server.ts';
import { isRoot, testThatNeeds } from '../support/needs.ts';
import { TestServer } from '../support/server.ts';
import { ServerJson } from '../support/server-json.ts';

const MCPB = join(ROOT, 'node_modules/@anthropic-ai/mcpb/dist/cli/cli.js');
const MANIFEST = join(ROOT, 'packaging/mcpb/manifest.json');
/** Nobody on this machine. */
const STRANGER = 54_321;
const KEY = 'a key for this test';

let folder = '';
let surroundings: Surroundings;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-clients-'));
  // Cells are other users than we.
  chmodSync(folder, 0o711);
  const home = join(folder, 'home');
  const workspaceFolder = join(folder, 'project');
  for (const path of [home, workspaceFolder]) mkdirSync(path);
  surroundings = { env: { HOME: home, HOTCELL_API_KEY: KEY }, workspaceFolder };
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Starts the program as a client does and lets it run code. Nothing of the real home is touched. */
async function tryOut({ command, args, env }: Program) {
  const state = join(folder, 'state');
  const client = makeClient({ era: 'legacy' });
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    env: {
      PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
      HOME: surroundings.env['HOME'] ?? '',
      HOTCELL_STATE_DIR: state,
      ...env,
    },
    stderr: 'pipe',
  });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const { reply } = await run(client, { code: 'const answer: number = 6 * 7; console.log(answer)' });
  const grant = await call(client, 'grant_permission', {
    type: 'file',
    path: surroundings.workspaceFolder,
    operations: ['read'],
  });
  await client.close();
  return { tools: tools.map(({ name }) => name), reply, grant, left: readdirSync(`${state}-workbench`) };
}

const WORKED = {
  tools: expect.arrayContaining(['run_code', 'get_run', 'grant_permission']) as string[],
  reply: { success: true, status: 'ok', stdout: '42\n', isolation: { driver: 'preload' } },
  left: [],
};

describe('docs/mcp.md', () => {
  test.each(STDIO_CLIENTS)('[MC-01] $title: what it would start runs code', async (client) => {
    const tried = await tryOut(programOf(client, surroundings));
    expect(tried).toMatchObject(WORKED);
    // Only one of them names the folder of the project.
    expect(tried.grant.failed).toBe(client.title !== 'VS Code');
  });

  test('[MC-01] claude mcp add: what it would start runs code', async () => {
    expect(await tryOut(programOfClaudeAdd())).toMatchObject(WORKED);
  });

  const missing =
    isRoot && findProgram('setpriv') !== undefined ? undefined : 'root and setpriv, to be somebody else';
  testThatNeeds(missing)('[MC-01] the same as somebody who is not root', async () => {
    for (const path of [folder, surroundings.env['HOME'] ?? '']) chownSync(path, STRANGER, STRANGER);
    const { command, args, env } = programOfClaudeAdd();
    const identity = [`--reuid=${STRANGER}`, `--regid=${STRANGER}`, '--clear-groups', '--'];
    const asStranger = { command: 'setpriv', args: [...identity, command, ...args], env };
    expect(await tryOut(asStranger)).toMatchObject({
      ...WORKED,
      reply: { ...WORKED.reply, isolation: { driver: 'preload', enforcement: { identity: 'nobody' } } },
    });
  });
});

describe('docs/mcp.md over HTTP', () => {
  let server: TestServer;
  let home = '';
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'hotcell-clients-up-'));
    server = await TestServer.start({ args: NO_POOL, env: { HOME: home, HOTCELL_API_KEY: KEY } });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(home, { recursive: true });
  });

  test.each(['legacy', 'modern'] as const)('[MC-01] with the key and not without, %s', async (era) => {
    const { url, headers } = remoteOf(surroundings);
    expect(new URL(url).origin).toBe('http://127.0.0.1:8000');
    const target = new URL(new URL(url).pathname, server.url);
    const client = makeClient({ era });
    await client.connect(new StreamableHTTPClientTransport(target, { requestInit: { headers } }));
    const { reply } = await run(client, { code: 'console.log(6 * 7)' });
    expect(reply).toMatchObject({ status: 'ok', stdout: '42\n', isolation: { driver: 'preload' } });
    await client.close();
    const stranger = makeClient({ era });
    await expect(stranger.connect(new StreamableHTTPClientTransport(target))).rejects.toThrow(/401|key/i);
  });
});

describe('the bundle', () => {
  /** What Claude Desktop would start, by the very code of mcpb. */
  async function programOfBundle(place: string, userConfig: Record<string, string>): Promise<Program> {
    const manifest = MANIFEST_SCHEMAS['0.4'].parse(readJson(join(place, 'manifest.json')));
    const found = await getMcpConfigForManifest({
      manifest,
      extensionPath: place,
      systemDirs: {},
      userConfig,
      pathSeparator: '/',
    });
    if (found === undefined) throw new Error('the manifest names no program');
    return { command: found.command, args: found.args ?? [], env: found.env ?? {} };
  }

  test('[MC-01] its manifest is valid, and a wrong one would not be', async () => {
    expect(await runTool(MCPB, ['validate', MANIFEST])).toMatchObject({ code: 0 });
    const wrong = join(folder, 'manifest.json');
    writeFileSync(wrong, JSON.stringify({ ...readJson(MANIFEST), server: { type: 'node' } }));
    expect(await runTool(MCPB, ['validate', wrong])).toMatchObject({ code: 1 });
  });

  test('[MC-01] packed and unpacked, with the npm packages beside it, it runs code', async () => {
    const [staged, packed, place] = [
      join(folder, 'staged'),
      join(folder, 'hotcell.mcpb'),
      join(folder, 'place'),
    ];
    const script = join(ROOT, 'packaging/mcpb/stage.sh');
    expect(spawnSync('bash', [script, staged], { encoding: 'utf8' })).toMatchObject({
      status: 0,
      stderr: '',
    });
    expect(await runTool(MCPB, ['pack', staged, packed])).toMatchObject({ code: 0 });
    expect(await runTool(MCPB, ['unpack', packed, place])).toMatchObject({ code: 0 });
    // They are for one platform and hundreds of megabytes, so a test does not pack them.
    symlinkSync(join(ROOT, 'node_modules'), join(place, 'node_modules'));

    const { grant, ...tried } = await tryOut(await programOfBundle(place, {}));
    expect(tried).toMatchObject(WORKED);
    expect(grant).toMatchObject({
      failed: true,
      text: expect.stringContaining('PERMISSION_REFUSED') as string,
    });
    const { workspaceFolder } = surroundings;
    const withFolder = await tryOut(await programOfBundle(place, { folders: workspaceFolder }));
    expect(withFolder.grant.structured).toMatchObject({ permissions: [{ path: workspaceFolder }] });
  });
});

describe('server.json', () => {
  const server = ServerJson.parse(readJson(join(ROOT, 'server.json')));
  const own = z
    .object({
      name: z.string(),
      version: z.string(),
      mcpName: z.string(),
      bin: z.record(z.string(), z.string()),
    })
    .parse(readJson(join(ROOT, 'package.json')));

  test('[MC-01] has the names and versions of the package, and so has the manifest', () => {
    expect(server).toMatchObject({ name: own.mcpName, version: own.version });
    for (const { identifier, version } of server.packages)
      expect({ identifier, version }).toEqual({ identifier: own.name, version: own.version });
    expect(Object.keys(own.bin)).toContain(own.name);
    expect(readJson(MANIFEST)).toMatchObject({ name: own.name, version: own.version });
  });

  test('[MC-01] names variables that there are, and what it would start runs code', async () => {
    const known = [...[...SETTINGS.values()].map(({ environmentName }) => environmentName), 'EXECUTION_MODE'];
    for (const { packageArguments, environmentVariables } of server.packages) {
      expect(known).toEqual(expect.arrayContaining(environmentVariables.map(({ name }) => name)));
      const env = environmentVariables.flatMap(({ name, default: value }) =>
        value === undefined ? [] : [[name, value] as const],
      );
      const tried = await tryOut({
        command: join(ROOT, own.bin[own.name] ?? ''),
        args: packageArguments.map(({ value }) => value),
        env: Object.fromEntries(env),
      });
      expect(tried).toMatchObject(WORKED);
    }
  });
});

function readJson(file: string): object {
  return z.looseObject({}).parse(JSON.parse(readFileSync(file, 'utf8')));
}
