import { expect, test } from 'vitest';
import { toTask } from '../support/fleet-repository.ts';
import { AgentFleet, expectDone } from './agent-fleet.ts';
import { describeWays } from './agent-ways.ts';
import { bash, costing, say, write, type Turn } from './turns.ts';

const toWork = (id: string, words = 'HOTCELL: done'): Turn[] => [
  write(`out/${id}.txt`, 'work\n'),
  say(words),
];

describeWays(['oci', 'docker', 'plain'], (way) => {
  test('[FL-03] an agent without exit codes goes on later, is blocked, asks, and is answered', async () => {
    const tasks = ['MORE', 'STUCK', 'ASKS'].map((id) => toTask(id, 1));
    await using fleet = await AgentFleet.open(way, { tasks });
    const { api, repository } = fleet;
    api
      .script(
        'MORE',
        [write('out/half.txt', 'half\n'), say('HOTCELL: continue - the other half')],
        toWork('MORE'),
      )
      .script(
        'STUCK',
        [say('I looked.\n\n**HOTCELL: blocked** - there is no compiler here')],
        toWork('STUCK'),
      )
      .script('ASKS', [say('HOTCELL: ask - red or blue?')], toWork('ASKS'));
    const { code, stderr, stdout } = await fleet.run();
    expect(code).toBe(1);
    expect(repository.readState().tasks).toMatchObject({
      MORE: { status: 'complete', retry_count: 0, said: null },
      STUCK: { status: 'blocked', exit_code: 3, error: 'there is no compiler here' },
      ASKS: { status: 'blocked', exit_code: 4, error: 'red or blue?' },
    });
    // Report, status and the words of the run have the reason; the first two also say what to do.
    expect(stderr).toContain('! STUCK needs a person: there is no compiler here');
    const status = await fleet.command('status');
    for (const text of [stdout, status.stdout]) {
      expect(text).toContain('STUCK is blocked: there is no compiler here');
      expect(text).toMatch(/ASKS asks for a decision: red or blue\?[^]*retry ASKS .*--answer/);
    }
    const [, second] = api.promptsOf('MORE');
    expect(second).toContain('An earlier attempt was put aside');
    expect(second).toContain('the other half');

    expectDone(await fleet.command('retry', 'ASKS', '--answer', 'take the blue one'));
    expectDone(await fleet.command('retry', 'STUCK'));
    expectDone(await fleet.inPlace(['resume']).ended);
    expect(api.promptsOf('ASKS')[1]).toMatch(/red or blue\?[^]*take the blue one/);
    expect(api.promptsOf('STUCK')[1]).toContain('there is no compiler here');
    expect(repository.countCommits()).toMatchObject({ STUCK: 1, ASKS: 1 });
    expect(await fleet.faults()).toEqual([]);
  });

  test('[FL-06, FL-13] one sees what agents do and cost, and a bound ends it', async () => {
    const tasks = [toTask('A', 1), toTask('B', 1)];
    const config = { agent: { max_turns: 3 } };
    await using fleet = await AgentFleet.open(way, { tasks, config });
    const { api, repository } = fleet;
    const tokens = { input: 100_000, output: 1000 };
    api
      .script(
        'A',
        toWork('A').map((turn) => costing(tokens, turn)),
      )
      .script('B', [bash('echo one'), bash('echo two'), bash('echo three')]);
    const { stdout } = await fleet.run();
    const { A: done, B: bounded } = repository.readState().tasks;
    expect(done).toMatchObject({
      status: 'complete',
      agent: { turns: 2, tool_calls: 1, input_tokens: 200_000 },
    });
    expect(done?.agent?.cost_usd).toBeGreaterThan(0.1);
    expect(bounded).toMatchObject({
      status: 'blocked',
      error: expect.stringContaining('raise agent.max_turns'),
    });
    expect(stdout).toMatch(/^A .* 2 +202k +\$\d/m);
    const status = JSON.parse((await fleet.command('status', '--json')).stdout) as {
      agent: { cost_usd: number };
      levels_agent: Record<string, { cost_usd: number }>;
    };
    expect(status.agent.cost_usd).toBeCloseTo((done?.agent?.cost_usd ?? 0) + (bounded?.agent?.cost_usd ?? 0));
    expect(status.levels_agent['1']?.cost_usd).toBe(status.agent.cost_usd);
    const logs = await fleet.command('logs', '--task', 'B');
    expect(logs.stdout).toMatch(/tool=Bash about=echo one[^]*tool=Bash about=echo two/);
    // While it works, and at its end: a price is known only then.
    const log = (await fleet.command('logs', '--task', 'A')).stdout;
    expect(log).toMatch(
      /A execute agent working [^\n]*turns=1\b[^]*agent ended exit_code=0 [^\n]*turns=2\b[^\n]*cost_usd=0\.\d/,
    );

    // It does not go on by itself, and does with a larger bound.
    fleet.configure({ agent: { max_turns: 100 } });
    api.script('B', toWork('B'));
    expectDone(await fleet.command('retry', 'B'));
    expectDone(await fleet.inPlace(['resume']).ended);
    expect(await fleet.faults()).toEqual([]);
  });
});
