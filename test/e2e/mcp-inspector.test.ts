import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runTool } from '../support/mcp-process.ts';
import { McpPlace, NO_POOL, PRELOAD, mcpCommand, modeArgs } from '../support/mcp-server.ts';
import { TestServer } from '../support/server.ts';

const INSPECTOR = fileURLToPath(
  new URL(
    '../../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
    import.meta.url,
  ),
);
let place: McpPlace;
beforeAll(() => void (place = new McpPlace()));
afterAll(() => place[Symbol.dispose]());

/** The server as the inspector starts it. */
function stdio(): string[] {
  const { command, args } = mcpCommand(place, { mode: PRELOAD });
  return [
    command,
    ...args,
    '--set',
    `stateDir=${place.stateDirectory}`,
    '--set',
    `packages.dir=${place.packages}`,
  ];
}

const TOOLS = ['--method', 'tools/list', '--strict'];
const CALL = [
  '--method',
  'tools/call',
  '--tool-name',
  'run_code',
  '--tool-args-json',
  '{"code":"console.log(`he${\\"llo\\"}`)"}',
];

async function expectNoComplaint(era: 'legacy' | 'modern', target: readonly string[]): Promise<void> {
  const inspect = (method: readonly string[]) =>
    runTool(INSPECTOR, ['--cli', '--protocol-era', era, '--format', 'json', ...method, ...target]);
  const { code, stdout, stderr } = await inspect(TOOLS);
  expect([code, stderr]).toEqual([0, expect.not.stringMatching(/warning|Issue/)]);
  expect(toolsIn(stdout)).toContain('run_code');
  const called = await inspect(CALL);
  expect([called.code, called.stdout]).toEqual([0, expect.stringContaining('hello')]);
}

// Each era and each transport once: all four pairs are in the tests of the door, and each start of the inspector is dear.
describe('the inspector finds nothing to complain about', () => {
  // oxlint-disable-next-line vitest/expect-expect -- the expectations are in the helper
  test('[MC-14] over stdio, legacy', () => expectNoComplaint('legacy', stdio()));

  // oxlint-disable-next-line vitest/expect-expect -- the expectations are in the helper
  test('[MC-14] over HTTP, modern', async () => {
    await using server = await TestServer.start({
      args: [...modeArgs(PRELOAD), ...NO_POOL],
      env: place.env,
      stateDirectory: place.stateDirectory,
    });
    await expectNoComplaint('modern', [`${server.url}/mcp`, '--transport', 'http']);
  });
});

function toolsIn(stdout: string): string[] {
  const { result } = JSON.parse(stdout) as { result: { tools: { name: string }[] } };
  return result.tools.map(({ name }) => name);
}
