import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { fleetPaths, taskFolder } from '../../src/fleet/names.ts';
import { FleetCommand, OCI, SUBPROCESS } from '../support/fleet-command.ts';
import { FleetRepository, type TestTask } from '../support/fleet-repository.ts';
import { whyNoOci } from '../support/fleet-ways.ts';
import { testThatNeeds } from '../support/needs.ts';

const FIRST = 'sk-ant-oat01-of-the-first-attempt';
const SECOND = 'sk-ant-oat01-that-was-renewed-within-the-run';
const KEY = 'sk-ant-api03-that-only-lies-in-an-env-file';

/** Shows and writes what it signs in with, in pieces and on both streams, and leaves it behind for its next attempt. */
const AGENT = `
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
readFileSync(0);
const { accessToken } = JSON.parse(readFileSync(process.env.HOME + '/.claude/.credentials.json', 'utf8')).claudeAiOauth;
const attempt = process.env.MAHABHARATHA_ATTEMPT;
for (const folder of ['out', 'marks']) mkdirSync(folder, { recursive: true });
for (const piece of ['token: ', ...accessToken, '\\n']) {
  process.stdout.write(piece);
  await sleep(1);
}
console.error('again: ' + accessToken);
writeFileSync('out/A.txt', attempt + ' ' + accessToken + '\\n');
appendFileSync('marks/tokens', accessToken + '\\n');
appendFileSync('marks/A', attempt + '\\n');
while (attempt === '1' && !existsSync('marks/go')) await sleep(20);
`;
const SHOW = 'cat out/A.txt; cat marks/tokens .env >&2';
const TASK: TestTask = {
  id: 'A',
  level: 1,
  title: 'Leak',
  files: { create: ['out/A.txt'] },
  verification: { command: `${SHOW}; grep -q '^2 ' out/A.txt`, timeout_seconds: 60 },
  script: [],
};
const CONFIG = {
  agent: { command: 'node', args: ['leak.mjs'] },
  credentials: { oauth: true },
  quality_gates: [{ name: 'shows', command: 'cat out/A.txt .env; exit 1' }],
};

function logIn(repository: FleetRepository, accessToken: string): void {
  const folder = join(repository.home, '.claude');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, '.credentials.json'), JSON.stringify({ claudeAiOauth: { accessToken } }));
}

describe.each([
  { name: 'oci', args: OCI, missing: whyNoOci },
  { name: 'subprocess', args: SUBPROCESS, missing: undefined },
])('what is kept of a fleet, $name', ({ args, missing }) => {
  testThatNeeds(missing)('[FL-08] has no token and no key in it, whoever has printed them', async () => {
    using repository = FleetRepository.make({ tasks: [TASK], config: CONFIG, files: { 'leak.mjs': AGENT } });
    repository.writeAll({ '.env': `ANTHROPIC_API_KEY=${KEY}\n` });
    logIn(repository, FIRST);
    await using run = FleetCommand.start(repository, ['kurukshetra', ...args, '--workers', '1']);
    await repository.untilAnnounced('A');
    logIn(repository, SECOND);
    repository.mark('go');
    const { code, stdout, stderr } = await run.ended;
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    expect(repository.task('A')).toMatchObject({ status: 'complete', retry_count: 1 });

    const paths = fleetPaths(repository.root, repository.feature);
    const kept = (folder: string, file: string): string => readFileSync(join(folder, file), 'utf8');
    const task = taskFolder(paths, 'A');
    // Twice on both streams; and of the first attempt three, of the second one four. The streams may be mixed in any way.
    expect(kept(task, 'claude_output.txt').split('[secret]')).toHaveLength(1 + 4);
    expect(kept(task, 'verification_output.txt').split('[secret]')).toHaveLength(1 + 7);
    expect(kept(task, 'interrupted.patch')).toContain('\n+1 [secret]\n');
    expect(kept(task, 'git_diff.patch')).toContain('\n+2 [secret]\n');
    const gate = kept(paths.checkResults, 'level-1/shows.json');
    expect(JSON.parse(gate)).toMatchObject({
      result: 'fail',
      output: '2 [secret]\nANTHROPIC_API_KEY=[secret]',
    });
    expect(stderr).toContain('the verification ended with 1: 1 [secret]');
    for (const secret of [FIRST, SECOND, KEY]) {
      expect(stdout + stderr).not.toContain(secret);
      const found = spawnSync('grep', ['-rlaF', '--exclude=.env', secret, repository.root], {
        encoding: 'utf8',
      });
      expect({ status: found.status, files: found.stdout }).toEqual({ status: 1, files: '' });
    }
  });
});
