import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AgentFleet, API_KEY, expectDone } from './agent-fleet.ts';
import { describeWays } from './agent-ways.ts';
import { bash, read, say, write } from './turns.ts';

const TITLES = ['Problem', 'Scope', 'Functional requirements', 'Acceptance criteria', 'Open questions'];
/** Longer than what is kept of the last words of a worker's agent. */
const REQUIREMENTS = `# Requirements: greet\n\n${TITLES.map((title) => `## ${title}\n\n${`A greeting for ${title}.\n`.repeat(100)}`).join('\n')}`;
const GRAPH = {
  feature: 'greet',
  tasks: [
    {
      id: 'GREET-1',
      title: 'Write the greeting',
      level: 1,
      estimate_minutes: 10,
      files: { create: ['greeting.txt'] },
      verification: { command: 'grep -q Hello greeting.txt', timeout_seconds: 60 },
    },
    {
      id: 'GREET-2',
      title: 'Say it',
      level: 2,
      estimate_minutes: 10,
      dependencies: ['GREET-1'],
      files: { create: ['greet.sh'] },
      verification: { command: 'bash greet.sh | grep -q Hello', timeout_seconds: 60 },
    },
  ],
};

type Figures = Readonly<Record<'turns' | 'input_tokens' | 'cost_usd', number>>;
interface Costs {
  readonly agent: Figures;
  readonly planning_agent: Figures;
  readonly tasks: Readonly<Record<string, { readonly agent?: Figures }>>;
}

describeWays(['oci', 'docker', 'plain', 'rootless'], (way) => {
  test('[FL-01, FL-03, FL-15, FL-17] from an idea to the branch of the user', async () => {
    // In cells with everything that the agent does by itself: the gate keeps it from leaving this machine.
    const env = way.name === 'subprocess' ? {} : { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: undefined };
    await using fleet = await AgentFleet.open(way, { env });
    const { api, repository } = fleet;
    const textOf = (path: string): string => readFileSync(join(repository.root, path), 'utf8');
    api
      .script('plan', [bash('ls'), say(`Here it is.\n\n${REQUIREMENTS}`)])
      .script('design', [say(`Here it is:\n\n\`\`\`json\n${JSON.stringify(GRAPH)}\n\`\`\``)])
      .script('GREET-1', [write('greeting.txt', 'Hello\n'), say()])
      .script('GREET-2', [read('greeting.txt'), write('greet.sh', 'cat greeting.txt\n'), say()]);

    expectDone(await fleet.command('init'));
    // Apart from this, all of it is as `init` leaves it.
    fleet.configure();
    expectDone(await fleet.inPlace(['plan', 'greet', 'a greeting']).ended);
    expect(textOf('.gsd/specs/greet/requirements.md')).toMatch(
      /^# Requirements: greet\n\nStatus: DRAFT\n\n## Problem/,
    );
    expect(textOf('.gsd/specs/greet/requirements.md').length).toBeGreaterThan(REQUIREMENTS.length);
    expectDone(await fleet.command('plan', 'greet', '--approve'));
    expectDone(await fleet.inPlace(['design']).ended);
    expect(JSON.parse(textOf('.gsd/specs/greet/task-graph.json'))).toMatchObject(GRAPH);
    expectDone(await fleet.run());
    const { stdout } = await fleet.command('status', '--json');
    const { agent, planning_agent: planning, tasks } = JSON.parse(stdout) as Costs;
    expect(planning.turns).toBe(3);
    const works = ['GREET-1', 'GREET-2'].map((id) => tasks[id]?.agent);
    for (const part of ['turns', 'input_tokens', 'cost_usd'] as const) {
      expect(planning[part]).toBeGreaterThan(0);
      expect(agent[part]).toBeCloseTo(
        [planning, ...works].reduce((sum, one) => sum + (one?.[part] ?? 0), 0),
        6,
      );
    }
    expect(repository.readState('greet').planning).toEqual(planning);
    expect(JSON.parse(stdout)).toMatchObject({
      run_state: 'complete',
      tasks: { 'GREET-1': { status: 'complete', retry_count: 0 }, 'GREET-2': { status: 'complete' } },
      levels: { 1: { status: 'complete' }, 2: { status: 'complete' } },
    });
    expectDone(await fleet.command('merge'));
    expect(textOf('greet.sh')).toBe('cat greeting.txt\n');
    expect(repository.git('show', 'main:greeting.txt')).toBe('Hello\n');
    expectDone(await fleet.command('cleanup', '--yes'));
    expect(repository.git('for-each-ref', '--format=%(refname)').trim()).toBe('refs/heads/main');
    expect(readdirSync(join(repository.root, '.mahabharatha/state'))).toEqual(
      expect.not.arrayContaining([expect.stringMatching(/^greet/)]),
    );

    expect(api.requests.map(({ conversation, messages }) => `${conversation} ${messages}`)).toEqual([
      'plan 2', 'plan 4', 'design 2', 'GREET-1 2', 'GREET-1 4', 'GREET-2 2', 'GREET-2 4', 'GREET-2 6',
    ]); // prettier-ignore
    expect(new Set(api.requests.map(({ apiKey }) => apiKey))).toEqual(new Set([API_KEY]));
    expect(api.promptsOf('GREET-1')[0]).toContain('A greeting for Problem.');
    // Level 2 has begun with what level 1 made.
    expect(JSON.stringify(api.of('GREET-2')[1]?.body.messages.slice(2))).toContain('Hello');
    expect(await fleet.faults()).toEqual([]);
  });
});
