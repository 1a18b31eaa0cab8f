import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { whyNoEngine } from '../support/docker-engine.ts';
import { inspectContainers, lookAtAgents } from '../support/fleet-cells.ts';
import { FleetCommand, OCI, mahabharatha } from '../support/fleet-command.ts';
import { untilNothingIsLeft } from '../support/fleet-remains.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { envOf, startFleet, whyNoOci, type WayName } from '../support/fleet-ways.ts';
import { useWorkerImage } from '../support/fleet-worker-image.ts';
import { testThatNeeds } from '../support/needs.ts';

const LAUNCHER = fileURLToPath(new URL('../../hotcell', import.meta.url));
const stack = new AsyncDisposableStack();
beforeAll(async () => {
  if (whyNoEngine() === undefined) await useWorkerImage(stack);
});
afterAll(() => stack.disposeAsync());
const plainTest = testThatNeeds(undefined);

/** Ends with the test file, whatever a test does. */
function start(repository: FleetRepository, way: WayName, ...args: string[]): FleetCommand {
  return stack.use(startFleet(repository, way, ['kurukshetra', ...args]));
}

function resume(repository: FleetRepository, way: WayName, ...args: string[]): FleetCommand {
  return stack.use(startFleet(repository, way, ['resume', ...args]));
}

const ociTest = testThatNeeds(whyNoOci);

describe.concurrent('a level that does not end by itself', { timeout: 240_000 }, () => {
  plainTest(
    '[FL-03, FL-15] twice failed, then passed; one fails for good until a person has mended it',
    async () => {
      const verification = { command: 'test -e marks/mended || { echo what is missing; exit 5; }' };
      const tasks = [
        toTask('TWICE', 1, [['fail', 2]]),
        toTask('NEVER', 1, [], { verification }),
        toTask('FINE', 1),
        toTask('LATER', 2),
      ];
      const repository = stack.use(
        FleetRepository.make({ tasks, config: { workers: { retry_attempts: 2 } } }),
      );
      const first = start(repository, 'subprocess');
      const end = await first.ended;
      expect(end.code).toBe(1);
      const { tasks: states, levels } = repository.readState();
      expect(states).toMatchObject({
        TWICE: { status: 'complete', retry_count: 2 },
        NEVER: { status: 'failed', retry_count: 3 },
        FINE: { status: 'complete', retry_count: 0 },
        LATER: { status: 'pending' },
      });
      expect(levels['1']?.status).toBe('failed');
      expect(end.stderr).toContain('what is missing');
      const twice = repository.report('TWICE', states['TWICE']?.commit ?? '');
      expect(twice).toMatchObject({
        attempt: 3,
        lastError: expect.stringContaining('failed on purpose, attempt 2'),
      });
      expect(repository.git('rev-parse', repository.branch('staging'))).toBe(
        repository.git('rev-parse', 'main'),
      );
      repository.mark('mended');
      expect(await mahabharatha(repository, ['retry', 'NEVER'])).toMatchObject({ code: 0 });
      const second = resume(repository, 'subprocess');
      expect(await second.ended).toMatchObject({ code: 0 });
      expect(repository.countCommits()).toEqual({ TWICE: 1, NEVER: 1, FINE: 1, LATER: 1 });
      expect(repository.report('LATER').seen).toEqual(['FINE.txt', 'NEVER.txt', 'TWICE.txt']);
      await untilNothingIsLeft(repository, [first, second]);
    },
  );

  plainTest(
    '[FL-05, FL-15] a conflict is explained, loses nothing, and is resolved by the commands as printed',
    async () => {
      const both = (id: string) =>
        toTask(id, 1, [
          ['wait', 'go'],
          ['write', 'shared.txt', `as ${id} wants it\n`],
        ]);
      const repository = stack.use(
        FleetRepository.make({
          tasks: [both('A'), both('B'), toTask('C', 2)],
          config: { workers: { launcher_type: 'subprocess', max_concurrent: 2 } },
        }),
      );
      const first = stack.use(FleetCommand.start(repository, ['kurukshetra']));
      await repository.untilAnnounced('A');
      await repository.untilAnnounced('B');
      repository.mark('go');
      const { code, stderr } = await first.ended;
      expect(code).toBe(1);
      const { levels, tasks } = repository.readState();
      expect(levels['1']).toMatchObject({
        status: 'conflict',
        merge_details: { branch: repository.branch('worker-1'), files: ['shared.txt'] },
      });
      expect(stderr).toContain(`${repository.branch('worker-1')} does not merge: shared.txt`);
      for (const id of ['A', 'B']) {
        const branch = repository.branch(`worker-${tasks[id]?.worker_id}`);
        expect(repository.git('show', `${branch}:shared.txt`)).toBe(`as ${id} wants it\n`);
      }
      // Letter by letter what was printed, with the only thing that a person adds.
      const lines = stderr.slice(stderr.indexOf('Merge it by hand')).split('\n');
      const commands = lines.filter((line) => /^ {4}(git|cd|hotcell) /.test(line));
      expect(commands).toHaveLength(6);
      const at = commands.findIndex((line) => line.includes('git merge')) + 1;
      const script = commands.toSpliced(at, 0, "echo 'as both want it' > shared.txt").join('\n');
      mkdirSync(repository.beside('bin'));
      symlinkSync(LAUNCHER, repository.beside('bin/hotcell'));
      const resumed = FleetCommand.start(repository, ['-c', script], {
        program: '/bin/bash',
        env: { PATH: `${repository.beside('bin')}:${process.env['PATH'] ?? ''}` },
      });
      const end = await resumed.ended;
      expect({ code: end.code, stderr: end.code === 0 ? '' : end.stderr }).toEqual({ code: 0, stderr: '' });
      expect(repository.git('show', `${repository.branch('staging')}:shared.txt`)).toBe('as both want it\n');
      expect(repository.countCommits()).toEqual({ A: 1, B: 1, C: 1 });
      expect(repository.git('worktree', 'list').trim().split('\n')).toHaveLength(1);
      await untilNothingIsLeft(repository, [first, resumed]);
    },
  );

  ociTest(
    '[FL-05] a required gate stops the fleet until it is mended on the branch; others are only noted',
    async () => {
      const gates = [
        { name: 'advice', command: 'echo could be better; exit 3', required: false },
        { name: 'style', command: 'test -e mended.txt || { echo no style; exit 1; }', required: true },
        { name: 'last', command: 'true', required: true },
      ];
      const tasks = [toTask('A', 1), toTask('B', 2)];
      const repository = stack.use(FleetRepository.make({ tasks, config: { quality_gates: gates } }));
      const first = start(repository, 'oci');
      const { code, stderr } = await first.ended;
      expect(code).toBe(1);
      expect(stderr).toContain('check style did not pass after level 1 (fail): no style');
      expect(stderr).toContain(repository.branch('staging'));
      expect(stderr).toMatch(/^fleet: ✗ check advice did not pass \(\d+s\), which is not required$/m);
      expect(stderr).toMatch(/^fleet: ✗ check style did not pass \(\d+s\)$/m);
      expect(stderr).toMatch(/^fleet: - check last was skipped$/m);
      const results = (level: number): Record<string, unknown> => {
        const folder = join(repository.root, '.mahabharatha/artifacts/demo', `level-${level}`);
        return Object.fromEntries(
          readdirSync(folder).map((file) => {
            const { result } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { result: string };
            return [file, result];
          }),
        );
      };
      expect(results(1)).toEqual({ 'advice.json': 'fail', 'style.json': 'fail', 'last.json': 'skip' });
      expect(repository.readState().levels['1']).toMatchObject({
        status: 'failed',
        merge_details: { gate: 'style' },
      });
      const mend = repository.beside('mend');
      repository.git('worktree', 'add', '--quiet', mend, repository.branch('staging'));
      writeFileSync(join(mend, 'mended.txt'), '');
      execFileSync('git', ['-C', mend, 'add', '-A']);
      execFileSync('git', ['-C', mend, 'commit', '--quiet', '-m', 'Mend']);
      repository.git('worktree', 'remove', mend);
      const second = resume(repository, 'oci');
      const end = await second.ended;
      expect({ code: end.code, stderr: end.code === 0 ? '' : end.stderr }).toEqual({ code: 0, stderr: '' });
      expect(results(2)).toEqual({ 'advice.json': 'fail', 'style.json': 'pass', 'last.json': 'pass' });
      expect(repository.countCommits()).toEqual({ A: 1, B: 1 });
      expect(end.stderr.match(/^fleet: ✓ check (style|last) passed \(\d+s\)$/gm)).toHaveLength(4);
      const { stdout } = await mahabharatha(repository, ['logs', '--event', 'gate_pass']);
      const passed =
        / checks {4}info {2}verify check ended level=\d check=(style|last) result=pass \(\d+ ms\)$/gm;
      expect(stdout.match(passed)).toHaveLength(4);
      expect(repository.git('branch', '--list', '*gates*')).toBe('');
      await untilNothingIsLeft(repository, [first, second]);
    },
  );
});

describe.concurrent('two fleets at once', { timeout: 240_000 }, () => {
  ociTest(
    '[FL-15] of two features in one repository: both finish, and know nothing of each other',
    async () => {
      const repository = stack.use(
        FleetRepository.make({ tasks: [toTask('A', 1, [['wait', 'go']]), toTask('B', 2)], feature: 'one' }),
      );
      repository.writeGraph('two', [toTask('X', 1, [['wait', 'go']]), toTask('Y', 2)]);
      repository.git('add', '-A');
      repository.git('commit', '--quiet', '-m', 'Two');
      const fleets = [
        start(repository, 'oci', '--feature', 'one'),
        start(repository, 'subprocess', '--feature', 'two'),
      ];
      await repository.untilAnnounced('A', 'one');
      await repository.untilAnnounced('X', 'two');
      for (const feature of ['one', 'two']) repository.mark('go', feature);
      const ends = await Promise.all(fleets.map(({ ended }) => ended));
      expect(ends.map(({ code }) => code)).toEqual([0, 0]);
      const files = (feature: string): string =>
        repository.git('ls-tree', '-r', '--name-only', repository.branch('staging', feature), 'out/');
      expect(files('one')).toBe('out/A.txt\nout/B.txt\n');
      expect(files('two')).toBe('out/X.txt\nout/Y.txt\n');
      await untilNothingIsLeft(repository, fleets);
    },
  );

  const dockerTest = testThatNeeds(whyNoEngine());
  dockerTest(
    '[FL-11, FL-15] in two repositories on one engine: cleaning up after one does not touch the other',
    async () => {
      const make = (): FleetRepository =>
        stack.use(FleetRepository.make({ tasks: [toTask('A', 1, [['wait', 'go']]), toTask('B', 2)] }));
      const [killed, living] = [make(), make()];
      const doomed = start(killed, 'docker');
      await killed.untilAnnounced('A');
      const other = start(living, 'docker');
      await living.untilAnnounced('A');
      await doomed.kill('SIGKILL');
      const look = async (): Promise<unknown[]> =>
        (await inspectContainers(other)).map(({ Id, Name, State }) => ({ Id, Name, ...State }));
      const before = await look();
      const { code } = await mahabharatha(killed, ['cleanup', '--yes', '--force'], { env: envOf('docker') });
      expect(code).toBe(0);
      await untilNothingIsLeft(killed, [doomed], 'docker');
      expect(existsSync(join(killed.root, '.mahabharatha/state/demo.json'))).toBe(false);
      expect(killed.git('branch', '--list', 'mahabharatha/*')).toBe('');
      expect(await look()).toEqual(before);
      expect(before).toHaveLength(2);
      living.mark('go');
      expect(await other.ended).toMatchObject({ code: 0 });
      expect(living.task('A')?.losses ?? 0).toBe(0);
      await untilNothingIsLeft(living, [other], 'docker');
    },
  );

  ociTest(
    '[FL-11, FL-15] in two repositories with one state directory: resuming one does not touch the other',
    async () => {
      const make = (): FleetRepository =>
        stack.use(FleetRepository.make({ tasks: [toTask('A', 1, [['wait', 'go']])] }));
      const [killed, living] = [make(), make()];
      const env = { HOTCELL_STATE_DIR: living.state };
      const args = [...OCI, '--workers', '1'];
      const doomed = FleetCommand.start(killed, ['kurukshetra', ...args], { env });
      const other = FleetCommand.start(living, ['kurukshetra', ...args]);
      await Promise.all([killed.untilAnnounced('A'), living.untilAnnounced('A')]);
      await doomed.kill('SIGKILL');
      killed.mark('go');
      const resumed = FleetCommand.start(killed, ['resume', ...args], { env });
      expect(await resumed.ended).toMatchObject({ code: 0 });
      expect(lookAtAgents(other)).toHaveLength(1);
      living.mark('go');
      expect(await other.ended).toMatchObject({ code: 0 });
      expect(living.task('A')?.losses ?? 0).toBe(0);
      await untilNothingIsLeft(living, [other]);
    },
  );
});
