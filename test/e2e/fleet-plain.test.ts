import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mahabharatha, SUBPROCESS } from '../support/fleet-command.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { testThatNeeds } from '../support/needs.ts';

/** Claude Code as its user has it: below the home folder. It writes down what it finds around itself. */
const CLAUDE = `#!/bin/bash
[[ $1 != --version ]] || { echo '1.2.3 (Claude Code)'; exit; }
prompt=$(cat)
[[ $prompt != 'Write the requirements'* ]] || { echo "## What a user sees"; exit; }
mkdir -p out
env >out/A.txt
command -v helper-of-mine >>out/A.txt
`;
const FLAG = '--dangerously-skip-permissions';
const KEY = { ANTHROPIC_API_KEY: 'sk-of-nobody' };
const rootTest = testThatNeeds(process.geteuid?.() === 0 ? undefined : 'only root is refused');

let repository: FleetRepository;
let env: Record<string, string> = {};
beforeAll(() => {
  repository = FleetRepository.make({
    tasks: [toTask('A', 1)],
    config: { agent: { command: 'claude', args: [FLAG] } },
  });
  const bin = join(repository.home, '.local/bin');
  mkdirSync(bin, { recursive: true });
  for (const name of ['claude', 'helper-of-mine']) {
    writeFileSync(join(bin, name), CLAUDE);
    chmodSync(join(bin, name), 0o755);
  }
  env = {
    ...KEY,
    PATH: `${bin}:${process.env['PATH'] ?? ''}`,
    HTTPS_PROXY: 'http://proxy.corp:1',
    SSL_CERT_FILE: '/corp.pem',
  };
});
afterAll(() => repository[Symbol.dispose]());

const COMMANDS = [['kurukshetra'], ['plan', 'login', 'passkeys', '--no-interactive']];

test('[FL-02] plain processes without the agent are refused before anything is made', async () => {
  for (const command of COMMANDS) {
    const { code, stderr } = await mahabharatha(repository, [...command, ...SUBPROCESS], {
      env: { ...KEY, PATH: '/usr/bin:/bin' },
    });
    expect({ code, stderr }).toMatchObject({ code: 2 });
    expect(stderr).toContain(
      'the agent cannot be started: there is no program claude on your PATH\n  → Install Claude Code',
    );
  }
  expect(repository.hasState()).toBe(false);
  expect(repository.git('branch', '--list', 'mahabharatha/*')).toBe('');
});

rootTest('[FL-02] as root Claude Code is refused with its flag before anything is made', async () => {
  for (const command of COMMANDS) {
    const { code, stderr } = await mahabharatha(repository, [...command, ...SUBPROCESS], { env });
    expect({ code, stderr }).toMatchObject({ code: 2 });
    expect(stderr).toContain(`Claude Code does not work as root with ${FLAG}\n  → Start it as another user`);
    expect(stderr).toContain('IS_SANDBOX: "1"');
  }
  expect(repository.hasState()).toBe(false);
  expect(repository.git('branch', '--list', 'mahabharatha/*')).toBe('');
});

test('[FL-10] plain processes have PATH, proxies and authorities of the caller', async () => {
  repository.writeConfig({ agent: { command: 'claude', args: [FLAG], env: { IS_SANDBOX: '1' } } });
  const { code, stderr } = await mahabharatha(repository, ['kurukshetra', ...SUBPROCESS], { env });
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  expect(stderr).toContain('/.local/bin/claude is of version 1.2.3; this release was tried with ');
  const seen = repository.git('show', `${repository.branch('staging')}:out/A.txt`);
  expect(seen).toContain(`PATH=${env['PATH']}:`);
  expect(seen).toContain('HTTPS_PROXY=http://proxy.corp:1\n');
  expect(seen).toContain('SSL_CERT_FILE=/corp.pem\n');
  expect(seen).toContain('/.local/bin/helper-of-mine\n');
});
