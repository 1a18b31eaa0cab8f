import { afterAll, beforeAll, describe, expect } from 'vitest';
import { whyNoVolumes } from '../../src/drivers/volumes/probe-volumes.ts';
import { whyNoEngine } from '../support/docker-engine.ts';
import { mahabharatha, type FleetCommand } from '../support/fleet-command.ts';
import { untilNothingIsLeft } from '../support/fleet-remains.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { WAYS, startFleet, type WayName } from '../support/fleet-ways.ts';
import { useWorkerImage } from '../support/fleet-worker-image.ts';
import { testThatNeeds } from '../support/needs.ts';

const stack = new AsyncDisposableStack();
beforeAll(async () => {
  if (whyNoEngine() === undefined) await useWorkerImage(stack);
});
afterAll(() => stack.disposeAsync());

const config = { resources: { worktree_disk: '64m' } };
/** More than that, where git does not look. */
const FILL = ['fill', 'node_modules/huge', 80] as const;
/** As much as a file system of that size takes, but for a little. */
const ALMOST = ['fill', 'node_modules/huge', 53] as const;

function start(repository: FleetRepository, way: WayName, ...args: string[]): FleetCommand {
  return stack.use(startFleet(repository, way, ['kurukshetra', ...args]));
}

/** What a task that fills its worktree is told. */
const TOLD = {
  watched: /^the worktree takes 8\d\.\d MB, and resources\.worktree_disk is 67\.1 MB \(WORKTREE_TOO_LARGE: /,
  kernel:
    /^no space is left in the worktree, and resources\.worktree_disk is 67\.1 MB \(WORKTREE_TOO_LARGE: /,
};
const boundOf = (way: WayName): keyof typeof TOLD =>
  way !== 'subprocess' && whyNoVolumes() === undefined ? 'kernel' : 'watched';

describe.concurrent('a worktree that grows', { timeout: 240_000 }, () => {
  for (const way of ['docker', 'oci', 'subprocess'] as const) {
    const test = testThatNeeds(WAYS[way].missing);
    test(`[FL-07, FL-12] beyond its bound (${way}): the task fails by the name of the setting, and begins anew`, async () => {
      const tasks = [
        toTask('A', 1, [
          [...FILL, 1],
          ['hang', 1],
        ]),
        toTask('B', 2),
      ];
      const repository = stack.use(FleetRepository.make({ tasks, config }));
      const command = start(repository, way);
      const { code, stderr } = await command.ended;
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      expect(stderr).toContain(`; worktrees up to 67.1 MB, ${boundOf(way)}`);
      expect(repository.task('A')).toMatchObject({ status: 'complete', retry_count: 1 });
      expect(repository.task('A')?.losses ?? 0).toBe(0);
      expect(repository.report('A').lastError).toMatch(TOLD[boundOf(way)]);
      expect(stderr).toMatch(/worker \d crashed: .*the worktree/);
      expect(repository.countCommits()).toEqual({ A: 1, B: 1 });
      const status = await mahabharatha(repository, ['status']);
      expect(status.stdout).toMatch(/^demo {2}complete.*, worktrees up to 67\.1 MB, (watched|kernel)$/m);
      expect(status.stdout).toContain(`67.1 MB, ${boundOf(way)}`);
      await untilNothingIsLeft(repository, [command], WAYS[way].engine);
    });
  }

  const test = testThatNeeds(WAYS.oci.missing);
  test('[FL-07] what a complete task has left costs the next one no attempt', async () => {
    const most = boundOf('oci') === 'kernel' ? ALMOST : FILL;
    const first = toTask('A', 1, [[...most, 1]], { estimate_minutes: 90 });
    const repository = stack.use(FleetRepository.make({ tasks: [first, toTask('B', 1)], config }));
    const command = start(repository, 'oci', '--workers', '1');
    expect(await command.ended).toMatchObject({ code: 0 });
    const { tasks, workers } = repository.readState();
    expect(tasks['A']).toMatchObject({ status: 'complete', retry_count: 0 });
    expect(tasks['B']).toMatchObject({ status: 'complete', retry_count: 0 });
    expect(workers['0']).toMatchObject({ restarts: 1 });
    expect(repository.countCommits()).toEqual({ A: 1, B: 1 });
    await untilNothingIsLeft(repository, [command]);
  });

  test('[FL-07] a repository that is larger by itself is said at the start', async () => {
    const files = { 'huge.txt': 'x'.repeat(80 * 1024 ** 2) };
    const workers = { spawn_retry_attempts: 0 };
    const repository = stack.use(
      FleetRepository.make({ tasks: [toTask('A', 1)], config: { ...config, workers }, files }),
    );
    const command = start(repository, 'oci', '--workers', '1');
    const { code, stderr } = await command.ended;
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/no worker could be started: .* worktree.* resources\.worktree_disk/);
    expect(repository.task('A')).toMatchObject({ status: 'pending', retry_count: 0 });
    await untilNothingIsLeft(repository, [command]);
  });
});
