import { expect, test } from 'vitest';
import { toTask } from '../support/fleet-repository.ts';
import { AgentFleet, expectDone } from './agent-fleet.ts';
import { describeWays } from './agent-ways.ts';
import { Hold, held, say, write, type Turn } from './turns.ts';

const toWork = (id: string): Turn[] => [write(`out/${id}.txt`, 'work\n'), say('HOTCELL: done')];

describeWays(['oci', 'plain'], (way) => {
  test('[FL-15, FL-11] kill -9 at each step of an agent: resume does the rest, and nothing twice', async () => {
    const tasks = [toTask('A', 1), toTask('B', 2), toTask('C', 3)];
    await using fleet = await AgentFleet.open(way, { tasks });
    const { api, repository } = fleet;
    // Before it has begun, after it has used a tool, and with its last words.
    const holds = [new Hold(), new Hold()] as const;
    api
      .script('A', [held(holds[0], say())], toWork('A'))
      .script('B', [write('out/B.txt', 'half\n'), held(holds[1], say())], toWork('B'))
      .script('C', toWork('C'));
    const commands = ['run', 'resume', 'resume'];
    for (const [index, command] of commands.entries()) {
      const run = fleet.inPlace([command, '--workers', '1']);
      const hold = holds[index];
      if (hold === undefined) expectDone(await run.ended);
      else {
        await hold.asked;
        await run.kill('SIGKILL');
        hold.release();
      }
    }
    expect(repository.countCommits()).toEqual({ A: 1, B: 1, C: 1 });
    expect(repository.readState().tasks).toMatchObject({ A: { retry_count: 0 }, B: { retry_count: 0 } });
    expect(await fleet.faults()).toEqual([]);
  });
});
