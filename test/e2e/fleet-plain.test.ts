import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
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
    // A shell that was given none looks in `.`, too; what means another folder in each place is not passed on.
    PATH: [bin, ...(process.env['PATH'] ?? '').split(':').filter(isAbsolute)].join(':'),
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

test('[FL-10] only whoever wants to know everything is told what workers do not get', async () => {
  const tasks = [toTask('B', 1)];
  using fresh = FleetRepository.make({ tasks, config: { environment: { allow: ['MY_*'] } } });
  const more = { env: { ...env, ELSE: '1', MY_TOKEN: 'x' } };
  const quiet = await mahabharatha(fresh, ['kurukshetra', ...SUBPROCESS], more);
  expect(quiet.stderr).toContain('environment.allow asks for variables that workers do not get: MY_TOKEN. ');
  expect(quiet.stderr).not.toContain('ELSE');
  expect(quiet.code).toBe(0);
  const loud = await mahabharatha(fresh, ['resume', ...SUBPROCESS, '--verbose'], more);
  expect(loud.stderr).toMatch(/^fleet: Workers do not get .*ELSE, /m);
});

test('[FL-10] plain processes have PATH, proxies and authorities of the caller', async () => {
  repository.writeConfig({ agent: { command: 'claude', args: [FLAG], env: { IS_SANDBOX: '1' } } });
  const { code, stderr } = await mahabharatha(repository, ['kurukshetra', ...SUBPROCESS], { env });
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stderr.trim().split('\n');
  expect(lines.slice(0, lines.indexOf('fleet: level 1 begins'))).toEqual([
    expect.stringMatching(/^fleet: feature demo, process \d+$/),
    'fleet: credentials for the agent: ANTHROPIC_API_KEY from the environment',
    expect.stringMatching(/^fleet: mode subprocess .*NO WALLS/),
    expect.stringMatching(
      /^fleet: .*\/.local\/bin\/claude is of version 1.2.3; this release was tried with /,
    ),
    'fleet: 1 task in 1 level, 5 workers',
    'fleet: watch it with hotcell fleet status --watch, or hotcell fleet logs --follow (--feature demo)',
  ]);
  const seen = repository.git('show', `${repository.branch('staging')}:out/A.txt`);
  expect(seen).toContain(`PATH=${env['PATH']}:`);
  expect(seen).toContain('HTTPS_PROXY=http://proxy.corp:1\n');
  expect(seen).toContain('SSL_CERT_FILE=/corp.pem\n');
  expect(seen).toContain('/.local/bin/helper-of-mine\n');
});
