import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { engineApi, whyNoEngine } from '../support/docker-engine.ts';
import { inspectContainers } from '../support/fleet-cells.ts';
import type { FleetCommand } from '../support/fleet-command.ts';
import { processesOf, untilNothingIsLeft } from '../support/fleet-remains.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { WAYS, startFleet, whyNoOci, type WayName } from '../support/fleet-ways.ts';
import { useWorkerImage } from '../support/fleet-worker-image.ts';
import { KILL_CELL, cgroupPidsOf } from '../support/kill-cell.ts';
import { waitFor } from '../support/leftovers.ts';
import { countMarked, makeMarker } from '../support/live-server.ts';
import { testThatNeeds } from '../support/needs.ts';

const MiB = 1024 ** 2;
const stack = new AsyncDisposableStack();
beforeAll(async () => {
  if (whyNoEngine() === undefined) await useWorkerImage(stack);
});
afterAll(() => stack.disposeAsync());

/** Ends with the test file, whatever a test does. */
function start(repository: FleetRepository, way: WayName, ...args: string[]): FleetCommand {
  return stack.use(startFleet(repository, way, ['kurukshetra', ...args]));
}

function resume(repository: FleetRepository, way: WayName, ...args: string[]): FleetCommand {
  return stack.use(startFleet(repository, way, ['resume', ...args]));
}

/** The cell in which a task is being worked on; of the subprocess driver there is only a process. */
function cellOf(repository: FleetRepository, id: string): string {
  const worker = repository.task(id)?.worker_id;
  return repository.readState().workers[String(worker)]?.container_id ?? '';
}

/** By the kernel, and behind everybody's back. */
function freeze(pid: number): void {
  const text = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  const old = /^\d+:freezer:(.*)$/m.exec(text)?.[1];
  if (old !== undefined) writeFileSync(join('/sys/fs/cgroup/freezer', old, 'freezer.state'), 'FROZEN');
  else writeFileSync(join('/sys/fs/cgroup', /^0::(.*)$/m.exec(text)?.[1] ?? '', 'cgroup.freeze'), '1');
}

/** As root of the host can do it, at any time. */
const KILL: Readonly<Record<WayName, (repository: FleetRepository, id: string) => Promise<unknown>>> = {
  docker: (repository, id) => KILL_CELL.docker(cellOf(repository, id)),
  oci: (repository, id) => KILL_CELL.oci(cellOf(repository, id)),
  // There is no cell: what can be lost is the agent.
  subprocess: (repository, id) => {
    const place = `worker-${repository.task(id)?.worker_id} `;
    const agent = processesOf(repository).find((line) => line.includes(place) && line.includes('agent.mjs'));
    return Promise.resolve(process.kill(Number.parseInt(agent ?? '', 10), 'SIGKILL'));
  },
};

describe.concurrent('a cell that is lost', { timeout: 240_000 }, () => {
  for (const way of ['docker', 'oci', 'subprocess'] as const) {
    const test = testThatNeeds(WAYS[way].missing);
    test(`[FL-12, FL-11] killed from outside (${way}): its task is handed on, and all ends right`, async () => {
      const resources = { container_memory_limit: '512m', container_cpu_limit: 0.5 };
      const tasks = [toTask('A', 1, [['wait', 'go']]), toTask('B', 1, [['wait', 'go']]), toTask('C', 2)];
      const repository = stack.use(FleetRepository.make({ tasks, config: { resources } }));
      const command = start(repository, way);
      await repository.untilAnnounced('A');
      await repository.untilAnnounced('B');
      const limits = way === 'docker' ? await inspectContainers(command) : [];
      expect(limits.map(({ HostConfig: { Memory, NanoCpus } }) => [Memory, NanoCpus])).toEqual(
        limits.map(() => [512 * MiB, 0.5e9]),
      );
      const lost = String(repository.task('A')?.worker_id);
      await KILL[way](repository, 'A');
      repository.mark('go');
      const { code, stderr } = await command.ended;
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      const { tasks: states, workers } = repository.readState();
      // That a cell was lost is no failure of the task; that an agent was killed is.
      const hasCells = way !== 'subprocess';
      expect(states['A']).toMatchObject({ status: 'complete', retry_count: hasCells ? 0 : 1 });
      expect(states['A']?.losses ?? 0).toBe(hasCells ? 1 : 0);
      expect(workers[lost]?.restarts).toBe(hasCells ? 1 : 0);
      expect(repository.events()).toContain(hasCells ? 'worker_crashed' : 'task_retry_scheduled');
      expect(states['B']).toMatchObject({ status: 'complete', retry_count: 0 });
      expect(states['B']?.losses ?? 0).toBe(0);
      expect(repository.countCommits()).toEqual({ A: 1, B: 1, C: 1 });
      expect(repository.report('C').seen).toEqual(['A.txt', 'B.txt']);
      await untilNothingIsLeft(repository, [command], WAYS[way].engine);
    });
  }

  const FREEZE = {
    docker: (id: string) => engineApi().call('POST', `/containers/${id}/pause`),
    oci: (id: string) => {
      freeze(cgroupPidsOf(id)[0] ?? 0);
      return Promise.resolve();
    },
  };
  for (const way of ['docker', 'oci'] as const) {
    const test = testThatNeeds(WAYS[way].missing);
    test(`[FL-12, FL-11] frozen (${way}): without a heartbeat it is crashed, removed and replaced`, async () => {
      const heartbeat = { interval_seconds: 0.5, stall_timeout_seconds: 6 };
      const tasks = [toTask('A', 1, [['wait', 'go']]), toTask('B', 1)];
      const repository = stack.use(FleetRepository.make({ tasks, config: { heartbeat } }));
      const command = start(repository, way);
      await repository.untilAnnounced('A');
      await FREEZE[way](cellOf(repository, 'A'));
      repository.mark('go');
      expect(await command.ended).toMatchObject({ code: 0 });
      expect(repository.task('A')).toMatchObject({ status: 'complete', retry_count: 0, losses: 1 });
      expect(command.stderr).toMatch(/worker \d crashed: no heartbeat for 6 s/);
      expect(repository.countCommits()).toEqual({ A: 1, B: 1 });
      await untilNothingIsLeft(repository, [command], WAYS[way].engine);
    });
  }

  for (const way of ['oci', 'subprocess'] as const) {
    const test = testThatNeeds(WAYS[way].missing);
    test(`[FL-12, FL-11] an agent over its time (${way}): crashed, tried again, and nothing of it survives`, async () => {
      const marker = makeMarker();
      const workers = { timeout_minutes: 0.1 };
      const script = [
        ['leave', marker],
        ['say', 'I wait for the others'],
        ['hang', 1],
        ['write', 'out/A.txt'],
      ] as const;
      const repository = stack.use(
        FleetRepository.make({ tasks: [toTask('A', 1, [], { script })], config: { workers } }),
      );
      const command = start(repository, way);
      expect(await command.ended).toMatchObject({ code: 0 });
      expect(repository.task('A')).toMatchObject({ status: 'complete', retry_count: 1 });
      expect(repository.report('A')).toMatchObject({
        attempt: 2,
        lastError: 'the agent took longer than 0.1 minutes',
      });
      expect(repository.events()).toContain('worker_crashed');
      expect(command.stderr).toMatch(
        /took longer than 0\.1 minutes The agent's last words: I wait for the others/,
      );
      await untilNothingIsLeft(repository, [command], WAYS[way].engine);
      expect(countMarked(marker)).toBe(0);
    });
  }

  const ociTest = testThatNeeds(whyNoOci);
  /** Kills the cell of a task each time that it is taken. */
  async function killEachTime(repository: FleetRepository, id: string, times: number): Promise<void> {
    for (let time = 1; time <= times; time++) {
      await waitFor(
        `${id} is taken for the ${time}. time`,
        () => repository.announced(id).length >= time,
        60_000,
      );
      await KILL.oci(repository, id);
    }
  }

  ociTest(
    '[FL-12] a task that takes its cell along every time fails, and does not go on for ever',
    async () => {
      const tasks = [toTask('BAD', 1, [['wait', 'never']]), toTask('GOOD', 1)];
      const workers = { retry_attempts: 1, max_respawn_attempts: 6 };
      const repository = stack.use(FleetRepository.make({ tasks, config: { workers } }));
      const command = start(repository, 'oci');
      // Two are forgiven, two are attempts.
      await killEachTime(repository, 'BAD', 4);
      const { code, stderr } = await command.ended;
      expect(code).toBe(1);
      expect(repository.task('GOOD')).toMatchObject({ status: 'complete' });
      expect(repository.task('BAD')).toMatchObject({ status: 'failed', retry_count: 2, losses: 4 });
      expect(stderr).toMatch(/BAD failed for good: .* was ended from outside, for the 4\. time/);
      await untilNothingIsLeft(repository, [command]);
    },
  );

  ociTest(
    '[FL-12] a worker that loses one cell after the other is given up; resume has a new one',
    async () => {
      const tasks = [toTask('A', 1, [['wait', 'go']])];
      const workers = { max_respawn_attempts: 1 };
      const repository = stack.use(FleetRepository.make({ tasks, config: { workers } }));
      const command = start(repository, 'oci', '--workers', '1');
      await killEachTime(repository, 'A', 2);
      const end = await command.ended;
      expect(end.code).not.toBe(0);
      expect(end.stderr).toContain('all workers are gone, and level 1 has open tasks');
      expect(repository.task('A')).toMatchObject({ status: 'pending', losses: 2, retry_count: 0 });
      const again = resume(repository, 'oci', '--workers', '1');
      // What is in a worktree can be seen while it is worked on.
      await waitFor('A is taken again', () => repository.announced('A').length >= 3);
      repository.mark('go');
      expect(await again.ended).toMatchObject({ code: 0 });
      expect(repository.countCommits()).toEqual({ A: 1 });
      await untilNothingIsLeft(repository, [command, again]);
    },
  );
});
