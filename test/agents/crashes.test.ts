import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { FleetCommand } from '../support/fleet-command.ts';
import type { GitMoment } from '../support/fleet-git-trap.ts';
import { processesOf } from '../support/fleet-remains.ts';
import { toTask } from '../support/fleet-repository.ts';
import { KILL_CELL } from '../support/kill-cell.ts';
import { waitFor } from '../support/leftovers.ts';
import { AgentFleet, expectDone } from './agent-fleet.ts';
import { describeWays } from './agent-ways.ts';
import { Hold, bash, held, say, write, type Turn } from './turns.ts';

const toWork = (id: string): Turn[] => [write(`out/${id}.txt`, 'work\n'), say('HOTCELL: done')];

/** Shell that tells that it runs, and goes on when it may. */
const pauseAt = (name: string): string =>
  `mkdir -p marks; touch marks/${name}; until test -e marks/go-${name}; do sleep 0.1; done`;

function isAt({ repository }: AgentFleet, name: string): boolean {
  return repository.worktrees().some((folder) => existsSync(join(folder, 'marks', name)));
}

/** Resolves when it has been killed, with SIGKILL. */
type Strike = (fleet: AgentFleet, start: () => FleetCommand) => Promise<void>;

async function kill(run: FleetCommand): Promise<void> {
  expect(await run.kill('SIGKILL')).toMatchObject({ signal: 'SIGKILL' });
}

function whileHeld(hold: Hold): Strike {
  return async (_, start) => {
    const run = start();
    await Promise.race([hold.asked, run.ended]);
    await kill(run);
    hold.release();
  };
}

function whilePausedAt(name: string, after: (fleet: AgentFleet) => void = () => {}): Strike {
  return async (fleet, start) => {
    const run = start();
    await waitFor(`it is at ${name}`, () => isAt(fleet, name) || !run.isRunning);
    await kill(run);
    after(fleet);
  };
}

/** `hold` is that of the last words of the agent: this is the first such call afterwards. */
function atGit(moment: Pick<GitMoment, 'words' | 'when'>, hold: Hold): Strike {
  return async (fleet, start) => {
    const trap = fleet.trapGit({ ...moment, later: true });
    const run = start();
    await Promise.race([hold.asked, run.ended]);
    trap.arm();
    hold.release();
    const { signal, stderr } = await run.ended;
    expect({ signal, stderr: signal === null ? stderr : '' }).toEqual({ signal: 'SIGKILL', stderr: '' });
  };
}

describeWays(['oci', 'plain'], (way) => {
  test('[FL-15, FL-11] kill -9 at each step of a task: resume does the rest, and nothing twice', async () => {
    const verification = { command: `${pauseAt('verification')}; test -s out/D.txt`, timeout_seconds: 120 };
    const tasks = ['A', 'B', 'C', 'D', 'E', 'F', 'G'].map((id, index) =>
      toTask(id, index + 1, [], id === 'D' ? { verification } : {}),
    );
    const toGate = (command: string) => ({ quality_gates: [{ name: 'last', command, required: true }] });
    const config = toGate(`test ! -e out/G.txt || { ${pauseAt('gate')}; }`);
    await using fleet = await AgentFleet.open(way, { tasks, config });
    const { api, repository } = fleet;
    const [begun, used, taken, toTake, toMerge] = [
      new Hold(),
      new Hold(),
      new Hold(),
      new Hold(),
      new Hold(),
    ];
    const toLastWords = (id: string, hold: Hold): Turn[] => [
      write(`out/${id}.txt`, 'work\n'),
      held(hold, say('HOTCELL: done')),
    ];
    api
      .script('A', [held(begun, say())], toWork('A'))
      .script('B', [write('out/B.txt', 'half\n'), held(used, say())], toWork('B'))
      .script('C', [bash(pauseAt('tool'))], toWork('C'))
      .script('D', toWork('D'), toWork('D'))
      // What the branch has is never asked for again.
      .script('E', toLastWords('E', taken))
      .script('F', toLastWords('F', toTake), toLastWords('F', toMerge))
      .script('G', toWork('G'));
    const staging = `refs/heads/${repository.branch('staging')}`;
    const strikes: readonly Strike[] = [
      whileHeld(begun),
      whileHeld(used),
      // Without cells the tool goes on until somebody resumes: it is not let go.
      whilePausedAt('tool'),
      whilePausedAt('verification', () => repository.mark('go-verification')),
      atGit({ words: 'commits of the worker', when: 'after' }, taken),
      atGit({ words: 'commits of the worker', when: 'before' }, toTake),
      atGit({ words: `worker-0 ${staging}`, when: 'after' }, toMerge),
      // Its place is made anew, where no mark is.
      whilePausedAt('gate', () => fleet.configure(toGate('test -s out/G.txt'))),
    ];
    let command = 'run';
    for (const strike of strikes) {
      await strike(fleet, () => fleet.inPlace([command, '--workers', '1']));
      command = 'resume';
    }
    expectDone(await fleet.inPlace([command, '--workers', '1']).ended);
    expect(repository.committed()).toEqual(tasks.map(({ id }) => id));
    expect(Object.values(repository.readState().tasks).map(({ retry_count: failures }) => failures)).toEqual(
      tasks.map(() => 0),
    );
    expect(await fleet.faults()).toEqual([]);
  });
});

describeWays(['oci', 'docker', 'plain'], (way) => {
  test('[FL-12, FL-11] the cell is killed, or without one the agent: its task is done again, once', async () => {
    await using fleet = await AgentFleet.open(way, { tasks: [toTask('A', 1), toTask('B', 2)] });
    const { api, repository } = fleet;
    const hold = new Hold();
    api.script('A', [write('out/A.txt', 'half\n'), held(hold, say())], toWork('A')).script('B', toWork('B'));
    const run = fleet.inPlace(['run', '--workers', '1']);
    await hold.asked;
    if (way.name === 'subprocess') killAgent(fleet);
    else await KILL_CELL[way.name](repository.readState().workers['0']?.container_id ?? '');
    hold.release();
    expectDone(await run.ended);
    expect(repository.committed()).toEqual(['A', 'B']);
    // That a cell was lost is no failure of the task; that an agent was killed is.
    expect(fleet.task('A')).toMatchObject(
      way.name === 'subprocess' ? { retry_count: 1 } : { retry_count: 0, losses: 1 },
    );
    expect(await fleet.faults()).toEqual([]);
  });
});

function killAgent({ repository }: AgentFleet): void {
  const agent = processesOf(repository).find((line) => / \S*claude\b.*--print/.test(line));
  process.kill(Number.parseInt(agent ?? '', 10), 'SIGKILL');
}
