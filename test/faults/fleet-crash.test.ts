import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { whyNoEngine } from '../support/docker-engine.ts';
import {
  FleetCommand,
  OCI,
  SUBPROCESS,
  mahabharatha,
  type FleetCommandOptions,
} from '../support/fleet-command.ts';
import { setGitTrap, type GitMoment } from '../support/fleet-git-trap.ts';
import { describeFleet, processesOf, untilNothingIsLeft, viewHost } from '../support/fleet-remains.ts';
import { FleetRepository, toTask, type TestTask } from '../support/fleet-repository.ts';
import { WAYS, envOf, whyNoOci, type WayName } from '../support/fleet-ways.ts';
import { useWorkerImage } from '../support/fleet-worker-image.ts';
import { waitFor } from '../support/leftovers.ts';
import { countMarked, makeMarker, waitUntilGone } from '../support/live-server.ts';
import { testThatNeeds } from '../support/needs.ts';

const stack = new AsyncDisposableStack();
beforeAll(async () => {
  if (whyNoEngine() === undefined) await useWorkerImage(stack);
});
afterAll(() => stack.disposeAsync());

/** Ends with the test file, whatever a test does. */
function start(
  repository: FleetRepository,
  args: readonly string[],
  options?: FleetCommandOptions,
): FleetCommand {
  return stack.use(FleetCommand.start(repository, args, options));
}

const ALL = ['A', 'B', 'C', 'D', 'E'];

/** Two levels; D and E see all of the first one. What is in `more` is about task A. */
function toGraph(more: Partial<TestTask> = {}): TestTask[] {
  const later = (id: string): TestTask =>
    toTask(id, 2, [], {
      verification: { command: `test -s out/${id}.txt && test "$(ls out/[ABC].txt | wc -l)" = 3` },
    });
  return [{ ...toTask('A', 1), ...more }, toTask('B', 1), toTask('C', 1), later('D'), later('E')];
}

/** Everything that must be true when a fleet was killed and has gone on. */
function expectRight(repository: FleetRepository): void {
  const { tasks, finished_at: finished } = repository.readState();
  expect(finished).toEqual(expect.any(String));
  expect(ALL.map((id) => `${id} ${tasks[id]?.status}`)).toEqual(ALL.map((id) => `${id} complete`));
  const files = repository.git('ls-tree', '-r', '--name-only', repository.branch('staging'), 'out/');
  expect(files.trim().split('\n')).toEqual(ALL.map((id) => `out/${id}.txt`));
  // Of the feature branch, because a task that was lost with its commit may have left one that was rescued.
  expect(repository.committed()).toEqual(ALL);
  expect(repository.lostCommits()).toEqual([]);
  expect(repository.git('fsck', '--no-dangling')).toBe('');
  for (const id of ALL) expect(repository.report(id).dotenv).toBe('PORT=1\n');
}

interface Crash {
  readonly name: string;
  readonly way: WayName;
  /** How the second one works; as the first unless given. */
  readonly resumeWay?: WayName;
  readonly moment: GitMoment;
}

const ours = (name: string): string => `refs/heads/mahabharatha/demo/${name}`;
const CRASHES: readonly Crash[] = [
  {
    name: 'before a worktree has everything that belongs into it',
    way: 'oci',
    moment: { words: 'worktree add', when: 'after' },
  },
  {
    name: 'after commits were taken in, before their branch had them',
    way: 'oci',
    moment: { words: `commits of the worker ${ours('worker-0')}`, when: 'before' },
  },
  {
    name: 'after the branch had the commits of a task, before the state said so',
    way: 'oci',
    moment: { words: `commits of the worker ${ours('worker-0')}`, when: 'after' },
  },
  {
    name: 'after the branch had the commits of a task, before the state said so',
    way: 'docker',
    moment: { words: `commits of the worker ${ours('worker-1')}`, when: 'after' },
  },
  {
    name: 'after a commit, before it was accepted',
    way: 'subprocess',
    // The first two are the start and the level.
    moment: { words: 'refs/mahabharatha/demo/accepted/worker-0', when: 'before', skip: 2 },
  },
  {
    name: 'before the first branch of a level was merged',
    way: 'subprocess',
    moment: { words: `worker-0 ${ours('staging')}`, when: 'before' },
  },
  {
    name: 'amid the merges of a level',
    way: 'oci',
    resumeWay: 'subprocess',
    moment: { words: `worker-0 ${ours('staging')}`, when: 'after' },
  },
];

describe.concurrent('kill -9 of the orchestrator, and resume', { timeout: 240_000 }, () => {
  for (const { name, way, resumeWay = way, moment } of CRASHES) {
    const test = testThatNeeds(WAYS[way].missing ?? WAYS[resumeWay].missing);
    test(`[FL-15, FL-11] ${name} (${way}): ends right, and nothing is done twice`, async () => {
      const repository = stack.use(FleetRepository.make({ tasks: toGraph() }));
      repository.writeAll({ '.env': 'PORT=1\n' });
      const before = viewHost(repository);
      const trap = setGitTrap(repository, moment);
      const first = start(repository, ['kurukshetra', ...WAYS[way].args, '--workers', '2'], {
        env: { ...envOf(way), PATH: trap.path },
      });
      const { signal, stderr } = await first.ended;
      expect({ signal, stderr: signal === null ? stderr : '' }).toEqual({ signal: 'SIGKILL', stderr: '' });
      expect(trap.hasSprung()).toBe(true);
      const complete = Object.entries(repository.readState().tasks).filter(
        ([, { status }]) => status === 'complete',
      );
      // Its cells end by themselves.
      await waitFor('no process is left', () => processesOf(repository).length === 0);
      const { args } = WAYS[resumeWay];
      const second = start(repository, ['resume', ...args, '--workers', '2'], {
        env: envOf(resumeWay),
      });
      const end = await second.ended;
      expect({ code: end.code, stderr: end.code === 0 ? '' : end.stderr }).toEqual({ code: 0, stderr: '' });
      expectRight(repository);
      const { tasks } = repository.readState();
      for (const [id, { commit }] of complete) expect(tasks[id]?.commit).toBe(commit);
      await untilNothingIsLeft(repository, [first, second], WAYS[way].engine);
      expect(viewHost(repository)).toEqual(before);
    });
  }

  const ociTest = testThatNeeds(whyNoOci);
  ociTest(
    '[FL-15, FL-11] while agents run (oci): no cell outlives it, and the tasks are taken again',
    async () => {
      const repository = stack.use(
        FleetRepository.make({
          tasks: toGraph().map((task) =>
            task.level === 1 ? { ...task, script: [['wait', 'go'], ...task.script] } : task,
          ),
        }),
      );
      repository.writeAll({ '.env': 'PORT=1\n' });
      const first = start(repository, ['kurukshetra', ...OCI, '--workers', '3']);
      for (const id of ['A', 'B', 'C']) await repository.untilAnnounced(id);
      await first.kill('SIGKILL');
      expect(repository.task('A')).toMatchObject({ status: 'in_progress' });
      // What is in cells has no part of the path of the repository: it is found by its cgroup.
      const processes = async (): Promise<string[]> =>
        (await describeFleet(repository, [first])).filter((line) => /^(pid|process) /.test(line));
      await waitFor('no process of its cells is left', async () => (await processes()).length === 0);
      repository.mark('go');
      const second = start(repository, ['resume', ...OCI, '--workers', '2']);
      expect(await second.ended).toMatchObject({ code: 0 });
      expectRight(repository);
      expect(repository.events().filter((event) => event === 'task_requeued')).toHaveLength(3);
      await untilNothingIsLeft(repository, [first, second]);
    },
  );

  const plainTest = testThatNeeds(undefined);
  plainTest(
    '[FL-15, FL-11] during a verification (subprocess), after others were refused while it lived',
    async () => {
      const command =
        'mkdir -p marks; touch marks/verifying; until test -e marks/go; do sleep 0.1; done; test -s out/A.txt';
      const verification = { command, timeout_seconds: 120 };
      const repository = stack.use(FleetRepository.make({ tasks: toGraph({ verification }) }));
      repository.writeAll({ '.env': 'PORT=1\n' });
      const first = start(repository, ['kurukshetra', ...SUBPROCESS, '--workers', '2']);
      const isVerifying = (): boolean =>
        repository.worktrees().some((folder) => existsSync(join(folder, 'marks/verifying')));
      await waitFor('A is being verified', isVerifying);
      expect(repository.task('A')).toMatchObject({ status: 'verifying' });

      const record = JSON.parse(
        readFileSync(join(repository.root, '.mahabharatha/state/demo.orchestrator.json'), 'utf8'),
      ) as { pid: number; started_at: string };
      expect(record.pid).toBe(first.pid);
      const refused = await Promise.all(
        [
          ['resume', ...SUBPROCESS],
          ['kurukshetra', ...SUBPROCESS],
          ['merge', '--force'],
          ['cleanup', '--yes'],
        ].map((args) => mahabharatha(repository, args)),
      );
      for (const { code, stderr } of refused) {
        expect(code).toBe(1);
        expect(stderr).toContain(`process ${first.pid}, started ${record.started_at}, works on feature demo`);
      }
      expect(first.isRunning).toBe(true);

      await first.kill('SIGKILL');
      repository.mark('go');
      await waitFor('no process is left', () => processesOf(repository).length === 0);
      const second = start(repository, ['resume', ...SUBPROCESS, '--workers', '2']);
      expect(await second.ended).toMatchObject({ code: 0 });
      expectRight(repository);
      await untilNothingIsLeft(repository, [first, second]);
    },
  );
});

interface Stop {
  readonly how: string;
  readonly way: WayName;
  readonly code: number;
  readonly stop: (repository: FleetRepository, command: FleetCommand) => Promise<void>;
}

const STOPS: readonly Stop[] = [
  {
    how: 'SIGINT',
    way: 'subprocess',
    code: 130,
    stop: (_repository, { child }) => Promise.resolve(void child.kill('SIGINT')),
  },
  {
    how: 'SIGTERM',
    way: 'oci',
    code: 143,
    stop: (_repository, { child }) => Promise.resolve(void child.kill('SIGTERM')),
  },
  {
    how: 'hotcell fleet stop',
    way: 'docker',
    code: 143,
    stop: async (repository, { pid }) => {
      const { code, stdout } = await mahabharatha(repository, ['stop'], { env: envOf('docker') });
      expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining(String(pid)) });
    },
  },
];

describe.concurrent('being stopped', { timeout: 240_000 }, () => {
  for (const { how, way, code, stop } of STOPS) {
    const test = testThatNeeds(WAYS[way].missing);
    test(`[FL-15, FL-11] ${how} (${way}): also agents that do not care for SIGTERM, after a grace`, async () => {
      const marker = makeMarker();
      const repository = stack.use(
        FleetRepository.make({
          tasks: [
            toTask('DONE', 1, [], { estimate_minutes: 9 }),
            toTask('WAITS', 1, [['wait', 'go']]),
            toTask('HANGS', 1, [
              ['leave', marker],
              ['hang', 99],
            ]),
          ],
        }),
      );
      const command = start(repository, ['kurukshetra', ...WAYS[way].args, '--workers', '2'], {
        env: envOf(way),
      });
      await repository.untilAnnounced('WAITS');
      await repository.untilAnnounced('HANGS');
      await waitFor('the process is there', () => countMarked(marker) > 0);
      const started = performance.now();
      await stop(repository, command);
      const end = await command.ended;
      const tookMs = performance.now() - started;
      expect(end).toMatchObject({ code, signal: null });
      expect(end.stderr).toContain('stopped; nothing that was committed is lost');
      // Ten seconds of grace, and not much more.
      expect(tookMs).toBeGreaterThan(9_000);
      expect(tookMs).toBeLessThan(30_000);
      await waitUntilGone(marker);
      await untilNothingIsLeft(repository, [command], WAYS[way].engine);
      expect(repository.readState().tasks).toMatchObject({
        DONE: { status: 'complete', retry_count: 0 },
        WAITS: { status: 'pending', retry_count: 0 },
        HANGS: { status: 'pending', retry_count: 0 },
      });
      expect(repository.countCommits()).toEqual({ DONE: 1 });
      const statuses = Object.values(repository.readState().workers).map(({ status }) => status);
      expect(statuses).toEqual(['stopped', 'stopped']);
    });
  }
});
