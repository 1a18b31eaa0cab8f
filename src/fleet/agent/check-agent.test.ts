import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FleetConfig } from '../fleet-config.ts';
import { checkAgent, describeBegun, type AgentCheck } from './check-agent.ts';

const AS_IT_COMES = FleetConfig.parse({}).agent;
const versions = { tried: '2.1.325', inCells: undefined };

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-check-agent-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function makeProgram(path: string, script: string, mode = 0o755): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), `#!/bin/sh\n${script}\n`);
  chmodSync(join(root, path), mode);
}

const check = (agent: Partial<AgentCheck['agent']>, more: Partial<AgentCheck> = {}): Promise<string[]> =>
  checkAgent({
    site: { mode: 'subprocess', tools: ['bun'], agentVersions: versions },
    agent: { ...AS_IT_COMES, ...agent },
    variables: { PATH: `${root}/empty:${root}/bin:/usr/bin:/bin:{tools}` },
    root,
    home: root,
    uid: 1000,
    ...more,
  });

test('[FL-02] an agent that is nowhere on the PATH is refused, with what to do', async () => {
  makeProgram('bin/claude', 'exit 0', 0o644);
  mkdirSync(join(root, 'empty/claude'), { recursive: true });
  await expect(check({})).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
    message: 'the agent cannot be started: there is no program claude on your PATH',
    hint: expect.stringContaining('hotcell fleet build'),
  });
  await expect(check({ command: 'my-agent' })).rejects.toMatchObject({
    hint: expect.stringContaining('agent.command'),
  });
  // Nothing is looked for where the caller happens to be.
  await expect(check({ command: 'package.json' }, { variables: { PATH: '.:' } })).rejects.toThrow(
    'on your PATH',
  );
});

test('[FL-02] one of the PATH, of the repository, or of ours is taken', async () => {
  makeProgram('bin/my-agent', 'exit 0');
  makeProgram('tools/other', 'exit 0');
  for (const command of ['my-agent', 'tools/other', './tools/other', '/bin/sh', 'bun'])
    expect(await check({ command })).toEqual([]);
  await expect(check({ command: 'tools/missing' })).rejects.toThrow(
    `there is no program ${root}/tools/missing`,
  );
  // The agent's own variables count.
  expect(await check({ command: 'other', env: { PATH: `${root}/tools` } })).toEqual([]);
});

test.each([
  ['--dangerously-skip-permissions'],
  ['--permission-mode', 'bypassPermissions'],
  ['--permission-mode=bypassPermissions'],
])('[FL-02] as root Claude Code would refuse %j in every task, so it is refused at once', async (...args) => {
  makeProgram('bin/claude', "echo '2.1.325 (Claude Code)'");
  const agent = { args: ['--print', ...args] };
  await expect(check(agent, { uid: 0 })).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
    message: expect.stringContaining(`Claude Code does not work as root with ${args.at(-1)}`),
    hint: expect.stringMatching(/another user[^]*hotcell fleet build[^]*IS_SANDBOX: "1"/),
  });
  expect(await check(agent)).toEqual([]);
  expect(await check({ ...agent, env: { IS_SANDBOX: '1' } }, { uid: 0 })).toEqual([]);
  expect(await check({ args: ['--print'] }, { uid: 0 })).toEqual([]);
});

test('[FL-14] another version than the one of this release is said, and no error', async () => {
  const path = join(root, 'bin/claude');
  makeProgram('bin/claude', '[ "$*" = --version ] && [ "$PWD" = / ] && echo \'2.0.1 (Claude Code)\'');
  expect(await check({})).toEqual([`${path} is of version 2.0.1; this release was tried with 2.1.325`]);
  makeProgram('bin/claude', "echo '2.1.325 (Claude Code)'; exit 1");
  expect(await check({})).toEqual([`${path} is of an unknown version; this release was tried with 2.1.325`]);
});

test('[FL-14] one that never says its version keeps nobody waiting for long', async () => {
  makeProgram('bin/claude', 'exec sleep 600');
  expect(await check({}, { askMs: 100 })).toEqual([expect.stringContaining('an unknown version')]);
});

test('[FL-14] in cells it is the version that was installed for them', async () => {
  const inCells = (version: string | undefined, agent: Partial<AgentCheck['agent']> = {}) =>
    check(agent, {
      site: { mode: 'container', tools: [], agentVersions: { tried: '2.1.325', inCells: version } },
      uid: 0,
    });
  expect(await inCells('2.1.325')).toEqual([]);
  expect(await inCells('2.1.9')).toEqual([expect.stringContaining('version 2.1.9;')]);
  expect(await inCells(undefined)).toEqual([expect.stringContaining('an unknown version')]);
  expect(await inCells(undefined, { command: 'tools/claude' })).toEqual([]);
});

test.each([
  // What the start has told, or need not tell, is no news.
  ['2.1.325', 'container', 'claude', undefined, undefined],
  ['2.1.9', 'container', 'claude', '2.1.9', undefined],
  ['2.1.9', 'subprocess', 'claude', undefined, undefined],
  // The image is another by now, or nobody knew what is in it.
  ['2.1.9', 'container', 'claude', '2.1.325', '2.1.9'],
  ['2.1.9', 'container', 'claude', undefined, '2.1.9'],
  ['2.1.9', 'container', 'tools/claude', '2.1.9', '2.1.9'],
  ['2.1.9', 'subprocess', 'tools/wrapper', undefined, '2.1.9'],
] as const)(
  '[FL-14] an agent that says %s when it begins (%s, %s, in cells %s) is told of as %s',
  (...row) => {
    const [version, mode, command, inCells, said] = row;
    const site = { mode, agentVersions: { tried: '2.1.325', inCells } } as const;
    const { agent } = FleetConfig.parse({ agent: { command } });
    const words = `the agent, Claude Code, is of version ${said}; this release was tried with 2.1.325`;
    expect(describeBegun(version, { site, agent })).toBe(said === undefined ? undefined : words);
    expect(describeBegun('9'.repeat(9000), { site, agent })?.length ?? 0).toBeLessThan(200);
  },
);
