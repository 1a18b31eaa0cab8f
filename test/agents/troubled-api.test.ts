import { expect, test } from 'vitest';
import { toTask } from '../support/fleet-repository.ts';
import { AgentFleet, expectDone } from './agent-fleet.ts';
import { describeWays } from './agent-ways.ts';
import { Hold, cut, fail, held, lasting, say, write, type Turn } from './turns.ts';

const toWork = (id: string): Turn[] => [write(`out/${id}.txt`, 'work\n'), say()];
const toTasks = (ids: readonly string[]) => ids.map((id) => toTask(id, 1));
/** As often as the agent asks. */
const refused = (status: 429 | 529): Turn[] => [lasting(fail(status))];

describeWays(['oci', 'docker', 'plain'], (way) => {
  test('[FL-03, FL-12] what passes is waited for by the agent, what lasts costs an attempt and is told', async () => {
    const tasks = toTasks(['LIMIT', 'BUSY', 'TORN', 'LIMITED', 'CUT']);
    await using fleet = await AgentFleet.open(way, { tasks, config: { workers: { retry_attempts: 1 } } });
    const { api, repository } = fleet;
    api
      .script('LIMIT', refused(429), toWork('LIMIT'))
      .script('BUSY', refused(529), toWork('BUSY'))
      .script('TORN', [lasting(cut())], toWork('TORN'))
      .script('LIMITED', [fail(429, { retryAfter: 0 }), ...toWork('LIMITED')])
      .script('CUT', [write('out/CUT.txt', 'work\n'), cut(), say()]);
    expectDone(await fleet.run('--workers', '2'));
    expect(repository.readState().tasks).toMatchObject({
      LIMIT: { status: 'complete', retry_count: 1 },
      BUSY: { status: 'complete', retry_count: 1 },
      TORN: { status: 'complete', retry_count: 1 },
      LIMITED: { status: 'complete', retry_count: 0 },
      CUT: { status: 'complete', retry_count: 0 },
    });
    const said = Object.fromEntries(
      ['LIMIT', 'BUSY', 'TORN'].map((id) => [
        id,
        /The last attempt failed\n(.*)/.exec(api.promptsOf(id)[1] ?? '')?.[1],
      ]),
    );
    expect(said).toEqual({
      LIMIT: expect.stringContaining('rate limit'),
      BUSY: expect.stringContaining('Overloaded'),
      TORN: expect.stringContaining('Connection to the API was lost'),
    });

    expect(repository.countCommits()).toEqual({ LIMIT: 1, BUSY: 1, TORN: 1, LIMITED: 1, CUT: 1 });
    expect(await fleet.faults()).toEqual([]);
  });

  test('[FL-12, FL-15] an answer that does not come is waited for, and stop does not wait for it', async () => {
    await using fleet = await AgentFleet.open(way, { tasks: toTasks(['A']) });
    const { api, repository } = fleet;
    const [first, second] = [new Hold(), new Hold()];
    const [begin, end] = toWork('A') as [Turn, Turn];
    api.script('A', [held(first, begin), held(second, end)], toWork('A'));
    const run = fleet.inPlace(['run', '--workers', '1']);
    await first.asked;
    expect(fleet.task('A')).toMatchObject({ status: 'in_progress', retry_count: 0 });
    first.release();
    // What the tool made went back with the next request.
    await second.asked;
    expect(api.of('A').map(({ messages }) => messages)).toEqual([2, 4]);
    expectDone(await fleet.command('stop'));
    expect((await run.ended).code).not.toBe(0);
    expect(fleet.task('A')).toMatchObject({ status: 'pending', retry_count: 0 });
    expectDone(await fleet.inPlace(['resume', '--workers', '1']).ended);
    expect(repository.countCommits()).toEqual({ A: 1 });
    expect(await fleet.faults()).toEqual([]);
  });
});
