import assert from 'node:assert/strict';
import { DOCKER, FleetCommand, OCI, type FleetEnd } from '../../support/fleet-command.ts';
import { untilNothingIsLeft } from '../../support/fleet-remains.ts';
import { FleetRepository, toTask } from '../../support/fleet-repository.ts';
import type { World } from '../world.ts';
import type { Perform } from './act.ts';

const TASKS = ['A', 'B', 'C'];
const MOST_STARTS = 10;

/** A small feature from its beginning to its end, however often its orchestrator is killed. */
export const fleet: Perform = async (world) => {
  using repository = FleetRepository.make({
    tasks: [toTask('A', 1), toTask('B', 1), toTask('C', 2)],
  });
  const commands: FleetCommand[] = [];
  let end = await run(world, repository, 'kurukshetra', commands);
  while (end.signal === 'SIGKILL' && commands.length < MOST_STARTS)
    end = await run(world, repository, repository.hasState() ? 'resume' : 'kurukshetra', commands);
  assert.equal(end.code, 0, `the fleet ended with ${end.code ?? end.signal}: ${end.stderr.slice(-2000)}`);
  const { tasks } = repository.readState();
  assert.deepEqual(
    TASKS.map((id) => [id, tasks[id]?.status]),
    TASKS.map((id) => [id, 'complete']),
  );
  assert.deepEqual(repository.lostCommits(), []);
  for (const id of TASKS) assert.equal(repository.report(id).task, id);
  assert.equal(repository.git('fsck', '--no-dangling'), '');
  await untilNothingIsLeft(repository, commands, world.way.driver === 'docker' ? 'docker' : 'none');
  world.ledger.addFleet(repository.root, TASKS, repository.committed());
};

async function run(
  { way, fleets }: World,
  repository: FleetRepository,
  command: 'kurukshetra' | 'resume',
  commands: FleetCommand[],
): Promise<FleetEnd> {
  const isDocker = way.driver === 'docker';
  const args = [command, ...(isDocker ? DOCKER : OCI), '--workers', '2'];
  const started = FleetCommand.start(
    repository,
    args,
    isDocker ? { env: { DOCKER_HOST: hostOf(way.args) } } : {},
  );
  commands.push(started);
  fleets.add(started);
  try {
    return await started.ended;
  } finally {
    fleets.delete(started);
  }
}

function hostOf(args: readonly string[]): string {
  return args.find((word) => word.startsWith('docker.host='))?.slice('docker.host='.length) ?? '';
}
