import { execFileSync, spawn } from 'node:child_process';
import { existsSync, globSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { whyNoVolumes } from '../../src/drivers/volumes/probe-volumes.ts';
import { whyNoEngine } from '../support/docker-engine.ts';
import { mahabharatha, type FleetCommand } from '../support/fleet-command.ts';
import { describeFleet, loopsOf, mountsOf, untilNothingIsLeft } from '../support/fleet-remains.ts';
import { FleetRepository, toTask, type Step } from '../support/fleet-repository.ts';
import { WAYS, envOf, startFleet, type WayName } from '../support/fleet-ways.ts';
import { useWorkerImage } from '../support/fleet-worker-image.ts';
import { waitFor } from '../support/leftovers.ts';
import { testThatNeeds } from '../support/needs.ts';
import { detachMounts } from '../support/own-disk.ts';

const stack = new AsyncDisposableStack();
beforeAll(async () => {
  if (whyNoEngine() === undefined) await useWorkerImage(stack);
});
afterAll(() => stack.disposeAsync());

/** Ignored files are what a worktree keeps beside its commits. Every attempt adds a letter. */
const SCRIPT: readonly Step[] = [
  ['write', 'node_modules/other', ''],
  ['append', 'node_modules/installed', 'x'],
  ['write', 'draft.txt', 'not committed'],
  ['wait', 'go'],
];
const config = { resources: { worktree_disk: '64m' } };
const make = (): FleetRepository =>
  stack.use(FleetRepository.make({ tasks: [toTask('A', 1, SCRIPT), toTask('B', 1, SCRIPT)], config }));

async function startUntilBusy(repository: FleetRepository, way: WayName): Promise<FleetCommand> {
  const command = stack.use(startFleet(repository, way, ['kurukshetra']));
  for (const id of ['A', 'B']) await repository.untilAnnounced(id);
  return command;
}

/** Kills it, and waits for what ends by itself: cells of oci; those of docker end with the next start. */
async function kill(repository: FleetRepository, command: FleetCommand): Promise<void> {
  await command.kill('SIGKILL');
  const isRunning = (line: string): boolean => /^(pid|process) /.test(line);
  await waitFor(
    'no process is left',
    async () => !(await describeFleet(repository, [command])).some(isRunning),
  );
}

const shown = (repository: FleetRepository): string[] =>
  mountsOf(repository).filter((line) => line.split(' ')[4]?.includes('/.mahabharatha-worktrees/demo/'));

/** They add to what they have told before; until they are mounted again, there is nothing to be marked. */
async function goOn(repository: FleetRepository, command: FleetCommand): Promise<void> {
  const isBack = (id: string): boolean => repository.announced(id).length === 2;
  await waitFor('they are at work again', () => ['A', 'B'].every(isBack) || !command.isRunning);
  repository.mark('go');
}

async function resume(repository: FleetRepository, way: WayName, before: FleetCommand): Promise<void> {
  const command = stack.use(startFleet(repository, way, ['resume']));
  await goOn(repository, command);
  const { code, stderr } = await command.ended;
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  for (const id of ['A', 'B']) expect(repository.report(id).installed).toBe('xx');
  const patches = globSync(join(repository.root, '.mahabharatha/logs/features/demo/*.interrupted.patch'));
  expect(patches.map((file) => readFileSync(file, 'utf8').includes('+not committed'))).toEqual([true, true]);
  await untilNothingIsLeft(repository, [before, command], WAYS[way].engine);
  expect(existsSync(join(repository.root, '.mahabharatha/cells/demo'))).toBe(false);
}

describe.concurrent('worktrees on file systems of their own', { timeout: 240_000 }, () => {
  for (const way of ['oci', 'docker'] as const) {
    const test = testThatNeeds(whyNoVolumes() ?? WAYS[way].missing);

    test(`[FL-07, FL-09] a program cannot write beyond the bound, and the host keeps its room (${way})`, async () => {
      const flood: Step[] = [
        ['flood', 'node_modules/flood', 1],
        ['write', 'calm.txt', 'there is room again'],
      ];
      const repository = stack.use(
        FleetRepository.make({ tasks: [toTask('A', 1, flood), toTask('B', 1), toTask('C', 2)], config }),
      );
      const command = stack.use(startFleet(repository, way, ['kurukshetra']));
      const { code, stderr } = await command.ended;
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      expect(stderr).toContain('; worktrees up to 67.1 MB, kernel\n');
      const log = join(repository.root, '.mahabharatha/logs/features/demo/tasks/A/claude_output.txt');
      const [, mebibytes, error] = /flooded (\d+) (\w+)/.exec(readFileSync(log, 'utf8')) ?? [];
      expect(error).toBe('ENOSPC');
      expect(Number(mebibytes)).toBeGreaterThan(32);
      expect(Number(mebibytes)).toBeLessThan(64);
      expect(repository.task('A')).toMatchObject({ status: 'complete', retry_count: 1 });
      expect(repository.report('A').lastError).toMatch(
        /^no space is left in the worktree, and resources\.worktree_disk is 67\.1 MB \(WORKTREE_TOO_LARGE: Raise resources\.worktree_disk/,
      );
      for (const id of ['B', 'C']) expect(repository.task(id)).toMatchObject({ retry_count: 0 });
      expect(repository.countCommits()).toEqual({ A: 1, B: 1, C: 1 });
      const status = await mahabharatha(repository, ['status', '--json']);
      expect(JSON.parse(status.stdout)).toMatchObject({
        worktree_bytes: 64 * 1024 ** 2,
        worktree_bound: 'kernel',
      });
      await untilNothingIsLeft(repository, [command], WAYS[way].engine);
    });

    test(`[FL-15, FL-11] kill -9, and resume: it finds what was in them (${way})`, async () => {
      const repository = make();
      const command = await startUntilBusy(repository, way);
      const [one, other] = shown(repository);
      for (const line of [one, other]) expect(line).toMatch(/ rw,nosuid,nodev,noatime .*ext4 \/dev\/loop/);
      expect(loopsOf(repository)).toHaveLength(2);
      await kill(repository, command);
      expect(shown(repository)).toHaveLength(2);
      await resume(repository, way, command);
    });

    test(`[FL-15, FL-11] kill -9, and cleanup: no mount, loop device or image is left (${way})`, async () => {
      const repository = make();
      const command = await startUntilBusy(repository, way);
      await kill(repository, command);
      const { code, stderr } = await mahabharatha(repository, ['cleanup', '--yes', '--force'], {
        env: envOf(way),
      });
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      await untilNothingIsLeft(repository, [command], WAYS[way].engine);
      expect(readdirSync(repository.root)).not.toContain('.mahabharatha-worktrees');
      expect(readdirSync(join(repository.root, '.mahabharatha'))).not.toContain('cells');
      expect(repository.git('worktree', 'list').trim().split('\n')).toHaveLength(1);
    });
  }

  const test = testThatNeeds(whyNoVolumes() ?? WAYS.oci.missing);

  test('[FL-15] the machine goes down, and resume: it finds what was in them', async () => {
    const repository = make();
    const command = await startUntilBusy(repository, 'oci');
    await kill(repository, command);
    detachMounts(repository.root);
    await waitFor('the loop devices are gone', () => loopsOf(repository).length === 0);
    await resume(repository, 'oci', command);
  });

  test('[FL-15, FL-11] an orderly stop leaves images and no mounts; what a larger bound makes of them holds more', async () => {
    const repository = make();
    const command = await startUntilBusy(repository, 'oci');
    await mahabharatha(repository, ['stop']);
    const end = await command.ended;
    expect({ code: end.code, stderr: end.code === 143 ? '' : end.stderr }).toEqual({ code: 143, stderr: '' });
    await untilNothingIsLeft(repository, [command]);
    const images = (): number[] =>
      globSync(join(repository.root, '.mahabharatha/cells/demo/volumes/*.img')).map((file) =>
        Number(execFileSync('stat', ['-c', '%s', file], { encoding: 'utf8' })),
      );
    expect(images()).toEqual([64 * 1024 ** 2, 64 * 1024 ** 2]);
    repository.writeConfig({ resources: { worktree_disk: '96m' } });
    const again = stack.use(startFleet(repository, 'oci', ['resume']));
    await waitFor('they have grown', () => images().every((bytes) => bytes === 96 * 1024 ** 2));
    await goOn(repository, again);
    expect(await again.ended).toMatchObject({ code: 0 });
    expect(repository.report('A').installed).toBe('xx');
    await untilNothingIsLeft(repository, [command, again]);
  });

  test('[FL-15] who stands in a worktree does not keep cleanup from its work', async () => {
    const repository = make();
    const command = await startUntilBusy(repository, 'oci');
    const [worktree = ''] = repository.worktrees();
    const standing = spawn('sleep', ['600'], { cwd: worktree, stdio: 'ignore' });
    stack.defer(() => void standing.kill('SIGKILL'));
    await command.kill('SIGKILL');
    const { code, stderr } = await mahabharatha(repository, ['cleanup', '--yes', '--force']);
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    expect(mountsOf(repository)).toEqual([]);
    expect(existsSync(join(repository.root, '.mahabharatha/cells'))).toBe(false);
  });
});
