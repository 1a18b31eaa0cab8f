import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fetchAgent, pinnedAgent, resolveAgentVersion, toAgentPlatform } from './agent-package.ts';

let folder = '';
const recipe = fileURLToPath(new URL('../../../images/mahabharatha-worker', import.meta.url));
const PINNED = pinnedAgent({ recipe });
let env: Record<string, string | undefined> = {};
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-agent-'));
  env = { ...process.env };
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Takes the place of npm: the registry of these tests cannot be trusted. */
function actAsNpm(script: string): void {
  writeFileSync(join(folder, 'npm'), `#!/bin/sh\nprintf '%s\\n' "$PWD" "$@" >${folder}/said\n${script}\n`);
  chmodSync(join(folder, 'npm'), 0o755);
  env['PATH'] = `${folder}${delimiter}${process.env['PATH']}`;
}

const fetch = (version?: string) =>
  fetchAgent({ recipe, env }, { platform: 'linux-x64', version, onProgress: () => {} });
const said = (): string[] => readFileSync(join(folder, 'said'), 'utf8').trim().split('\n');

test('[FL-14] another program than the pinned one is refused, and nothing of it stays', async () => {
  actAsNpm('echo evil >anthropic-claude.tgz');
  await expect(fetch()).rejects.toMatchObject({
    code: 'PACKAGE_UNAVAILABLE',
    message:
      'what npm has fetched as @anthropic-ai/claude-code-linux-x64 is not what this release was made with',
  });
  const [cwd = '', ...args] = said();
  expect(args).toEqual([
    'pack',
    '--ignore-scripts',
    '--silent',
    `@anthropic-ai/claude-code-linux-x64@${PINNED.version}`,
  ]);
  expect(existsSync(cwd)).toBe(false);
});

test('[FL-14] a version that was asked for is taken as npm has it, and removed after use', async () => {
  actAsNpm('echo other >anthropic-claude.tgz');
  let kept = '';
  {
    await using archive = await fetch('9.9.9');
    kept = archive.path;
    expect(archive.version).toBe('9.9.9');
    expect(readFileSync(kept, 'utf8')).toBe('other\n');
  }
  expect(existsSync(kept)).toBe(false);
});

test('[FL-14] a tag is asked for, and what is no version never reaches npm', async () => {
  actAsNpm('echo \'"3.1.4"\'');
  expect(await resolveAgentVersion({ recipe, env }, 'latest')).toBe('3.1.4');
  expect(said().slice(1)).toEqual(['view', '@anthropic-ai/claude-code@latest', 'version', '--json']);
  for (const wrong of ['', '1', '--registry=http://evil', '1.0.0 x', '../x', '1.0.0\n'])
    await expect(resolveAgentVersion({ recipe, env }, wrong)).rejects.toThrow('is no version of the agent');
});

test('[FL-14] the words of npm are told, and npm that is missing too', async () => {
  actAsNpm('echo "npm error code E404" >&2; echo "npm error 404 Not Found" >&2; exit 1');
  await expect(fetch()).rejects.toThrow('npm pack failed: code E404; 404 Not Found');
  env['PATH'] = join(folder, 'nowhere');
  await expect(fetch()).rejects.toMatchObject({ hint: expect.stringContaining('https://nodejs.org') });
});

test.each([
  ['linux/amd64', 'linux-x64'],
  ['linux/arm64/v8', 'linux-arm64'],
  ['x64', 'linux-x64'],
])('[FL-14] the agent for %s is %s, and pinned', (platform, wanted) => {
  expect(toAgentPlatform(platform)).toBe(wanted);
  expect(Object.keys(PINNED.integrity)).toContain(wanted);
  expect(Object.keys(PINNED.integrity)).toContain(toAgentPlatform(platform, 'musl'));
});

test.each(['linux/riscv64', 'windows/amd64', 'sparc'])('[FL-14] there is no agent for %s', (platform) => {
  expect(() => toAgentPlatform(platform)).toThrow(`there is no Claude Code for ${platform}`);
});
