import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { fleetPaths, taskFolder } from '../../src/fleet/names.ts';
import { toTask } from '../support/fleet-repository.ts';
import { API_KEY, AgentFleet, expectDone } from './agent-fleet.ts';
import { describeWays } from './agent-ways.ts';
import { Hold, bash, fail, held, lasting, say, write, type Turn } from './turns.ts';

const HOUR_MS = 3_600_000;
const REFRESH = 'sk-ant-ort01-refreshes-the-login-of-the-user';
const OTHERS = 'the-key-of-another-service';
const toWork = (id: string): Turn[] => [write(`out/${id}.txt`, 'work\n'), say('HOTCELL: done')];
const tasks = [toTask('A', 1)];
/** What no cell may, as a command of an agent. */
const SIGN_IN = `python3 -c "import urllib.request as u; u.urlopen('https://platform.claude.com/v1/oauth/token')" || true`;

/** As `claude` leaves it on the host, with more than what signs in. */
function logIn({ repository }: AgentFleet, token: string, endsInMs: number): string {
  const files = {
    '.claude/.credentials.json': {
      claudeAiOauth: {
        accessToken: token,
        refreshToken: REFRESH,
        expiresAt: Date.now() + endsInMs,
        scopes: ['user:inference', 'user:profile'],
        subscriptionType: 'max',
      },
      mcpOAuth: { server: { accessToken: OTHERS } },
    },
    '.claude.json': { mcpServers: { evil: { command: 'touch', args: ['evil'], env: { KEY: OTHERS } } } },
  };
  const { uid, gid } = statSync(repository.home);
  for (const [name, content] of Object.entries(files)) {
    const path = join(repository.home, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(content), { mode: 0o600 });
    if (process.getuid?.() === 0)
      execFileSync('chown', [
        '-R',
        `${uid}:${gid}`,
        dirname(path) === repository.home ? path : dirname(path),
      ]);
  }
  return readFileSync(join(repository.home, '.claude/.credentials.json'), 'utf8');
}

/** Nothing was lost, and nothing was spent. */
function expectPaused(
  fleet: AgentFleet,
  { code, stderr }: { readonly code: number | null; readonly stderr: string },
  task = 'A',
): void {
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('claude auth login') });
  expect(stderr).toContain('hotcell fleet resume');
  expect(fleet.repository.readState()).toMatchObject({
    paused: true,
    tasks: { [task]: { status: 'pending', retry_count: 0 } },
  });
}

describeWays(['oci', 'plain'], (way) => {
  test('[FL-08, FL-12] a key that is refused pauses the run, and costs no task an attempt', async () => {
    await using fleet = await AgentFleet.open(way, { tasks });
    fleet.api.script('A', [lasting(fail(401))], toWork('A'));
    const refused = await fleet.run();
    expectPaused(fleet, refused);
    expect(refused.stderr).toContain('Invalid API key');
    expectDone(await fleet.inPlace(['resume']).ended);
    expect(fleet.repository.countCommits()).toEqual({ A: 1 });
    expect(await fleet.faults()).toEqual([]);
  });

  test('[FL-08, FL-12] a login that has ended is asked for, and the next one is read without being told', async () => {
    const config = { credentials: { oauth: true } };
    // A key beside it is not used: whoever asks for the login does not want to pay for that.
    await using fleet = await AgentFleet.open(way, { tasks, config, env: { ANTHROPIC_API_KEY: API_KEY } });
    const { api, repository } = fleet;
    logIn(fleet, 'sk-ant-oat01-that-has-ended', -1000);
    const ended = await fleet.run();
    expectPaused(fleet, ended);
    expect(api.requests).toEqual([]);

    const token = 'sk-ant-oat01-that-is-good-for-hours';
    const before = logIn(fleet, token, 8 * HOUR_MS);
    const look =
      'cat ~/.claude/.credentials.json; ls -A ~; cat ~/.claude.json; env; tr "\\0" "\\n" </proc/$PPID/environ';
    api.script('A', [bash(look), ...toWork('A')]);
    const resumed = await fleet.inPlace(['resume']).ended;
    expectDone(resumed);
    expect(resumed.stderr).toMatch(/the login of ~\/\.claude\/\.credentials\.json, which ends at 20/);
    expect(
      new Set(api.requests.map(({ authorization, apiKey }) => `${authorization} ${apiKey ?? ''}`)),
    ).toEqual(new Set([`Bearer ${token} `]));
    // What the agent saw went to the API with its next request.
    const seen = api.of('A').at(-1)?.text ?? '';
    expect(seen).toContain(token);
    for (const secret of [REFRESH, OTHERS, API_KEY]) expect(seen).not.toContain(secret);
    // Nothing of the host's was spent or changed, and nothing of it is kept.
    expect(readFileSync(join(repository.home, '.claude/.credentials.json'), 'utf8')).toBe(before);
    const paths = fleetPaths(repository.root, repository.feature);
    const kept = readFileSync(join(taskFolder(paths, 'A'), 'claude_output.txt'), 'utf8');
    expect(kept).toContain('Bash: cat ~/.claude/.credentials.json');
    const { status, stdout } = spawnSync('grep', ['-rlaF', token, '.'], {
      cwd: repository.root,
      encoding: 'utf8',
    });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(await fleet.faults()).toEqual([]);
  });

  test('[FL-08, FL-12] within a run a token is read before each call: a new one is used, none and a short one pause', async () => {
    const config = { credentials: { oauth: true } };
    const levels = ['A', 'B', 'C'].map((id, index) => toTask(id, index + 1));
    // The key is not used either when the login is gone.
    const env = { ANTHROPIC_API_KEY: API_KEY };
    await using fleet = await AgentFleet.open(way, { tasks: levels, config, env });
    const { api, repository } = fleet;
    const [first, second, later] = ['first', 'second', 'later'].map((name) => `sk-ant-oat01-the-${name}-one`);
    const [inA, inB] = [new Hold(), new Hold()];
    for (const [id, hold] of [
      ['A', inA],
      ['B', inB],
    ] as const) {
      const [begin = say(), ...rest] = toWork(id);
      api.script(id, [held(hold, begin), ...rest]);
    }
    api.script('C', toWork('C'));
    logIn(fleet, first ?? '', HOUR_MS);
    const run = fleet.inPlace(['run', '--workers', '1']);
    await inA.asked;
    logIn(fleet, second ?? '', HOUR_MS);
    inA.release();
    await inB.asked;
    rmSync(join(repository.home, '.claude'), { recursive: true });
    inB.release();
    const gone = await run.ended;
    expectPaused(fleet, gone, 'C');
    expect(gone.stderr).toContain('the login of the agent is gone (~/.claude/.credentials.json)');
    // It would end within the task.
    logIn(fleet, 'sk-ant-oat01-that-ends-soon', 5 * 60_000);
    const short = await fleet.inPlace(['resume']).ended;
    expectPaused(fleet, short, 'C');
    expect(short.stderr).toMatch(/the login of the agent ends at .*, in less than the 10 minutes/);
    expect(api.of('C')).toEqual([]);
    logIn(fleet, later ?? '', HOUR_MS);
    expectDone(await fleet.inPlace(['resume']).ended);
    const used = ['A', 'B', 'C'].map((id) => [
      ...new Set(api.of(id).map(({ authorization, apiKey }) => `${authorization} ${apiKey ?? ''}`)),
    ]);
    expect(used).toEqual([first, second, later].map((token) => [`Bearer ${token} `]));
    expect(await fleet.faults()).toEqual([]);
  });

  test('[FL-08, FL-12] a token that the API refuses pauses the run, and costs no task an attempt', async () => {
    await using fleet = await AgentFleet.open(way, { tasks, config: { credentials: { oauth: true } } });
    fleet.api.script('A', [lasting(fail(401))], toWork('A'));
    logIn(fleet, 'sk-ant-oat01-that-was-taken-back', 8 * HOUR_MS);
    expectPaused(fleet, await fleet.run());
    logIn(fleet, 'sk-ant-oat01-that-is-good', 8 * HOUR_MS);
    expectDone(await fleet.inPlace(['resume']).ended);
    expect(fleet.api.of('A').at(-1)?.authorization).toBe('Bearer sk-ant-oat01-that-is-good');
    expect(await fleet.faults()).toEqual([]);
  });

  test('[FL-08] a token that lasts needs no word in the configuration', async () => {
    const token = 'sk-ant-oat01-of-claude-setup-token';
    const env = { ANTHROPIC_API_KEY: undefined, CLAUDE_CODE_OAUTH_TOKEN: token };
    await using fleet = await AgentFleet.open(way, { tasks, env });
    fleet.api.script('A', toWork('A'));
    expectDone(await fleet.run());
    expect(new Set(fleet.api.requests.map(({ authorization }) => authorization))).toEqual(
      new Set([`Bearer ${token}`]),
    );
    expect(await fleet.faults()).toEqual([]);
  });
});

describeWays(['oci', 'docker'], (way) => {
  test('[FL-08, FL-12] one that wanted to sign in and gives up as if all were well has failed, and is told why', async () => {
    await using fleet = await AgentFleet.open(way, { tasks });
    fleet.api.script('A', [bash(SIGN_IN), say('I cannot work like that.')], toWork('A'));
    const { code, stderr } = await fleet.run();
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(
        /A failed and will be tried again: the agent wanted to sign in, which no cell may \(platform\.claude\.com.*I cannot work like that/,
      ),
    });
    expect(fleet.api.promptsOf('A')[1]).toMatch(/The last attempt failed\nthe agent wanted to sign in/);
    expect(fleet.task('A')).toMatchObject({ status: 'complete', retry_count: 1 });
    expect(await fleet.faults()).toEqual([]);
  });

  test('[FL-08, FL-12] an agent that wants to sign in itself is told of as that, and costs no attempt', async () => {
    await using fleet = await AgentFleet.open(way, { tasks });
    fleet.api.script('A', [bash(SIGN_IN), lasting(fail(529))], toWork('A'));
    const { code, stderr } = await fleet.run();
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('platform.claude.com'),
    });
    expectPaused(fleet, { code, stderr });
    expectDone(await fleet.inPlace(['resume']).ended);
    expect(await fleet.faults()).toEqual([]);
  });
});
