import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mahabharatha, SUBPROCESS } from '../support/fleet-command.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';

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

test('[FL-10] plain processes have PATH, proxies and authorities of the caller', async () => {
  repository.writeConfig({ agent: { command: 'claude', args: [FLAG], env: { IS_SANDBOX: '1' } } });
  const { code, stderr } = await mahabharatha(repository, ['kurukshetra', ...SUBPROCESS], { env });
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  const seen = repository.git('show', `${repository.branch('staging')}:out/A.txt`);
  expect(seen).toContain(`PATH=${env['PATH']}:`);
  expect(seen).toContain('HTTPS_PROXY=http://proxy.corp:1\n');
  expect(seen).toContain('SSL_CERT_FILE=/corp.pem\n');
  expect(seen).toContain('/.local/bin/helper-of-mine\n');
});
