import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fleetPaths, taskFolder } from '../../src/fleet/names.ts';
import { toTask } from '../support/fleet-repository.ts';
import { AgentFleet, expectDone } from './agent-fleet.ts';
import { describeWays } from './agent-ways.ts';
import { bash, edit, read, say, write } from './turns.ts';

/** Says what is wrong, and where to look. */
const VERIFICATION = 'grep -q right out/A.txt || { echo "A.txt has: $(cat out/A.txt)"; exit 9; }';

describeWays(['oci', 'docker', 'plain'], (way) => {
  test('[FL-03] what the verification said is what the next attempt is told, and it starts afresh', async () => {
    const tasks = [
      toTask('A', 1, [], {
        files: { create: ['out/A.txt'], modify: ['.gitignore'] },
        verification: { command: VERIFICATION, timeout_seconds: 60 },
      }),
    ];
    await using fleet = await AgentFleet.open(way, { tasks });
    const { api, repository } = fleet;
    api.script(
      'A',
      [write('out/A.txt', 'wrong\n'), say('I think that this is it.')],
      [
        bash('ls out || echo "nothing there"'),
        write('out/A.txt', 'right\n'),
        read('.gitignore'),
        edit('.gitignore', 'marks/\n', 'signs/\n'),
        say(),
      ],
    );
    expectDone(await fleet.run());
    expect(fleet.task('A')).toMatchObject({ status: 'complete', retry_count: 1, error: null });
    const [first = '', second = ''] = api.promptsOf('A');
    expect(first).not.toContain('The last attempt failed');
    expect(second).toContain('the verification ended with 9: A.txt has: wrong');
    const [, afterList] = api.of('A').filter(({ attempt }) => attempt === 2);
    expect(JSON.stringify(afterList?.body.messages)).toContain('nothing there');
    const branch = repository.branch('staging');
    expect(repository.git('show', `${branch}:out/A.txt`)).toBe('right\n');
    expect(repository.git('show', `${branch}:.gitignore`)).toContain('signs/');
    expect(repository.countCommits()).toEqual({ A: 1 });
    const logs = taskFolder(fleetPaths(repository.root, repository.feature), 'A');
    expect(existsSync(join(logs, 'interrupted.patch'))).toBe(true);
    expect(await fleet.faults()).toEqual([]);
  });
});
