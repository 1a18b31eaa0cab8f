import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runTool } from '../support/mcp-process.ts';
import { McpPlace, NO_POOL, PRELOAD, modeArgs } from '../support/mcp-server.ts';
import { TestServer } from '../support/server.ts';

const SUITE = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);
const FIXTURES = fileURLToPath(new URL('../support/conformance/fitted-server.ts', import.meta.url));

test.each([
  ['2026-07-28', 37],
  ['2025-11-25', 30],
])('[MC-14] conformance to %s: all %i scenarios that count', async (revision, scenarios) => {
  using place = new McpPlace();
  await using server = await TestServer.start({
    args: [...modeArgs(PRELOAD), ...NO_POOL],
    env: place.env,
    preload: FIXTURES,
    stateDirectory: place.stateDirectory,
  });
  const url = `${server.url}/mcp`;
  const listed = await runTool(SUITE, ['list', '--server', '--requirements', revision]);
  const required = namesIn(listed.stdout.split('Client scenarios')[0] ?? '', /^ {2}- (\S+)$/gm);
  expect(required).toHaveLength(scenarios);

  const { code, stdout } = await runTool(SUITE, ['server', '--url', url, '--requirements', revision]);
  const summary = stdout.split('=== SUMMARY ===')[1] ?? '';
  const passed = namesIn(summary, /^✓ (\S+): \d+ passed, 0 failed/gm);
  expect({ code, missing: required.filter((name) => !passed.includes(name)), summary }).toEqual({
    code: 0,
    missing: [],
    summary,
  });
});

function namesIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name);
}
