import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MAIN } from '../support/command.ts';
import { testThatNeeds, whyNotOci } from '../support/needs.ts';
import { ociOptions } from '../support/package-site.ts';
import { makeStateDirectory, removeFolders } from '../support/server.ts';

const state = makeStateDirectory();
const ociTest = testThatNeeds(await whyNotOci(ociOptions(state)));
const SPECS = '.gsd/specs/login';

/** Does as it is asked, tries to approve its own work and to change the repository, and gets its first graph wrong. */
const AGENT = `
import { writeFileSync } from 'node:fs';
let prompt = '';
for await (const chunk of process.stdin) prompt += chunk;
writeFileSync('left-behind.txt', 'x');
if (prompt.startsWith('Write the requirements')) {
  const titles = [...prompt.matchAll(/^## (.*)$/gm)].map(([, title]) => title);
  const wish = /passkeys/.test(prompt) ? 'passkeys' : 'nothing';
  console.log('# Requirements: login\\n\\nStatus: APPROVED\\n');
  for (const title of titles) console.log('## ' + title + '\\n\\n' + wish + ' for uid ' + process.getuid() + '\\n');
} else {
  const isSecond = prompt.includes('# Your last answer');
  const files = prompt.includes('\\nREADME.md\\n') ? ['a.ts'] : [];
  console.log(JSON.stringify({ feature: 'login', tasks: [
    { id: 'A', title: 'A', level: 1, estimate_minutes: 9, files: { create: files }, verification: { command: 'true' } },
    { id: 'B', title: 'B', level: isSecond ? 2 : 1, dependencies: ['A'], verification: { command: 'true' } },
  ] }));
}
`;

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-fleet-plan-'));
  git('init', '--quiet', '--initial-branch=main');
  writeFileSync(join(root, 'README.md'), 'A shop\n');
  writeFileSync(join(root, 'agent.mjs'), AGENT);
  git('add', '-A');
  git('-c', 'user.name=T', '-c', 'user.email=t@example.org', 'commit', '--quiet', '-m', 'first');
});
afterEach(() => rmSync(root, { recursive: true }));
afterAll(() => removeFolders(state));

function git(...args: readonly string[]): string {
  return execFileSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: root },
  });
}

interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function mahabharatha(args: readonly string[], input = ''): Promise<Ran> {
  const child = spawn(process.execPath, [MAIN, 'mahabharatha', ...args], {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: root, HOTCELL_STATE_DIR: state },
    stdio: 'pipe',
  });
  child.stdin.end(input);
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  const status = await new Promise<number>((resolve) => child.on('close', (code) => resolve(code ?? -1)));
  return { status, ...output };
}

const read = (path: string): string => readFileSync(join(root, path), 'utf8');

function configure(more = ''): void {
  const text = read('.mahabharatha/config.yaml')
    .replace('command: claude', 'command: node')
    .replace("args: ['--print', '--dangerously-skip-permissions']", 'args: [agent.mjs]')
    .replace('allow: [api.anthropic.com, npm, pypi]', 'allow: []');
  writeFileSync(join(root, '.mahabharatha/config.yaml'), `${text}${more}`);
}

/** What a question must not leave behind. */
function traces(): object {
  return {
    branches: git('for-each-ref', '--format=%(refname)').trim().split('\n'),
    worktrees: git('worktree', 'list', '--porcelain').match(/^worktree /gm)?.length,
    leftBehind: existsSync(join(root, 'left-behind.txt')),
    changed: git('status', '--porcelain', '--untracked-files=all')
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(3)),
  };
}

const NOTHING = {
  branches: ['refs/heads/main'],
  worktrees: 1,
  leftBehind: false,
};

/** From nothing to a valid graph; says the user that the agent was. */
async function fromIdeaToGraph(mode: readonly string[]): Promise<string> {
  expect(await mahabharatha(['init'])).toEqual({
    status: 0,
    stdout: '✓ .mahabharatha/config.yaml\n✓ .gsd/specs\n',
    stderr: '',
  });
  configure();
  const planned = await mahabharatha(['plan', 'login', '--from-issue', '-', ...mode], 'passkeys, please\n');
  expect({ ...planned, stderr: planned.status === 0 ? '' : planned.stderr }).toEqual({
    status: 0,
    stdout: `✓ ${SPECS}/requirements.md is DRAFT\n`,
    stderr: '',
  });
  const requirements = read(`${SPECS}/requirements.md`);
  expect(requirements).toMatch(
    /^# Requirements: login\n\nStatus: DRAFT\n\n## Problem\n\npasskeys for uid \d+\n/,
  );
  const early = await mahabharatha(['design', ...mode]);
  expect(early).toMatchObject({ status: 2, stdout: '' });
  expect(early.stderr).toBe(
    `mahabharatha: ${SPECS}/requirements.md is not approved; its status is DRAFT\n` +
      '  → Read it, correct it, and then: hotcell fleet plan login --approve\n',
  );
  expect((await mahabharatha(['plan', '--approve'])).stdout).toBe(`✓ ${SPECS}/requirements.md is APPROVED\n`);
  const designed = await mahabharatha(['design', ...mode]);
  expect({ ...designed, stderr: designed.status === 0 ? '' : designed.stderr }).toEqual({
    status: 0,
    stdout: `✓ ${SPECS}/task-graph.json is valid: 2 tasks in 2 levels\n`,
    stderr: '',
  });
  expect(designed.stderr).toMatch(
    /the answer has 1 problem\nfleet: {3}tasks\[1\] \(B\)\.dependencies\[0\]: A is in level 1, which is not below level 1/,
  );
  expect(JSON.parse(read(`${SPECS}/task-graph.json`))).toMatchObject({
    tasks: [{ files: { create: ['a.ts'] } }, {}],
  });
  expect(await mahabharatha(['design', '--validate-only', '--json'])).toMatchObject({
    status: 0,
    stderr: '',
  });
  expect(traces()).toEqual({
    ...NOTHING,
    changed: [
      '.gsd/.current-feature',
      `${SPECS}/requirements.md`,
      `${SPECS}/task-graph.json`,
      '.mahabharatha/.gitignore',
      '.mahabharatha/config.yaml',
    ],
  });
  return /uid (\d+)/.exec(requirements)?.[1] ?? '';
}

describe('from an idea to a task graph', () => {
  test('[FL-17] with plain processes', async () => {
    expect(await fromIdeaToGraph(['--mode', 'subprocess'])).toBe(String(process.getuid?.()));
  });

  ociTest('[FL-17, FL-09] in cells, where the agent is not root', async () => {
    expect(await fromIdeaToGraph(['--mode', 'container', '--driver', 'oci'])).not.toBe('0');
  });
});

describe('the agent', () => {
  test('[FL-17] that fails is told in its own words, and nothing is left', async () => {
    await mahabharatha(['init']);
    configure();
    writeFileSync(join(root, 'agent.mjs'), 'console.error("no \\u001b[31mtokens"); process.exit(3);');
    git('-c', 'user.name=T', '-c', 'user.email=t@example.org', 'commit', '--quiet', '-a', '-m', 'second');
    const { status, stdout, stderr } = await mahabharatha([
      'plan',
      'login',
      'passkeys',
      '--mode',
      'subprocess',
    ]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain('mahabharatha: the agent ended with exit code 3:\n  | no \\x1b[31mtokens\n  → ');
    expect(existsSync(join(root, SPECS))).toBe(false);
    expect(traces()).toMatchObject(NOTHING);
  });

  test('[FL-17] is not needed to write it oneself, nor is a commit', async () => {
    rmSync(join(root, '.git'), { recursive: true });
    git('init', '--quiet');
    const { status, stdout } = await mahabharatha([
      'plan',
      'login',
      'passkeys',
      '--template-only',
      '-t',
      'minimal',
    ]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: `✓ ${SPECS}/requirements.md is DRAFT\n` });
    expect(read(`${SPECS}/requirements.md`)).toContain('## Problem\n\npasskeys\n');
    expect(await mahabharatha(['plan', '--approve'])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('there is still something to be written in: functional requirements'),
    });
  });
});

describe('hotcell fleet design --validate-only', () => {
  test('[FL-04] lists everything that is wrong', async () => {
    const tasks = [
      { id: 'A', title: 'A', level: 1, files: { create: ['x'] } },
      { id: 'B', title: 'B', level: 1, dependencies: ['A', 'C'], files: { modify: ['./x'] } },
    ];
    writeFileSync(join(root, 'graph.json'), JSON.stringify({ feature: 'login', tasks }));
    const args = ['design', '-f', 'login', '--validate-only', '-g', 'graph.json'];
    const { status, stdout, stderr } = await mahabharatha(args);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr.split('\n').slice(0, 4)).toEqual([
      'mahabharatha: graph.json: the task graph has 3 problems:',
      '  tasks[1] (B).dependencies[0]: A is in level 1, which is not below level 1 of this task',
      '  tasks[1] (B).dependencies[1]: there is no task "C"',
      '  tasks[1] (B).files.modify[0]: x belongs to tasks[0] (A) already; a file belongs to one task',
    ]);
    expect(JSON.parse((await mahabharatha([...args, '--json'])).stdout)).toMatchObject({
      code: 'GRAPH_INVALID',
    });
  });
});
