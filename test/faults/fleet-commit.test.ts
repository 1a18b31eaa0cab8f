import { afterAll, beforeAll, describe, expect } from 'vitest';
import { readConfig } from '../../src/app/config/read-config.ts';
import { WORKER_DRIVERS } from '../../src/app/drivers/driver-choices.ts';
import { WORKTREE_VOLUMES } from '../../src/app/fleet/fleet-machine.ts';
import { openFleetSite } from '../../src/app/fleet/open-fleet.ts';
import type { Cell } from '../../src/core/cell.ts';
import type { Exec, ExecRequest } from '../../src/core/exec.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import type { FleetMachine } from '../../src/fleet/fleet-machine.ts';
import { runFleet } from '../../src/fleet/run/run-fleet.ts';
import { engineHost, whyNoEngine } from '../support/docker-engine.ts';
import { howOften } from '../support/endurance.ts';
import { withExec, type ExecInCell } from '../support/faulty-driver.ts';
import { untilNothingIsLeft } from '../support/fleet-remains.ts';
import { FleetRepository, toTask, type Step, type TestTask } from '../support/fleet-repository.ts';
import { WAYS, whyNoOci } from '../support/fleet-ways.ts';
import { useWorkerImage } from '../support/fleet-worker-image.ts';
import { KILL_CELL } from '../support/kill-cell.ts';
import { testThatNeeds } from '../support/needs.ts';

/** Loses a cell. */
type Lose = (cell: Cell) => Promise<void>;

/** Of each task the cell is lost once, with the command of the number of the task after its agent. */
class FaultyCells {
  /** The tasks whose cell was lost. */
  readonly lost: number[] = [];
  readonly #lose: Lose;
  readonly #round: number;
  #task = -1;
  #commands = 0;

  /** In even rounds every other cell is lost while the command runs, in odd ones the others. */
  constructor(lose: Lose, round: number) {
    this.#lose = lose;
    this.#round = round;
  }

  readonly exec: ExecInCell = async (cell, request) => {
    const task = request.verbatim?.env['MAHABHARATHA_TASK_ID'];
    if (task !== undefined) {
      this.#task = Number(task.slice(1));
      this.#commands = 0;
    } else if (this.#task >= 0 && this.#commands++ === this.#task && !this.lost.includes(this.#task)) {
      this.lost.push(this.#task);
      return this.#execAndLose(cell, request);
    }
    return cell.exec(request);
  };

  async #execAndLose(cell: Cell, request: ExecRequest): Promise<Exec> {
    if ((this.#task + this.#round) % 2 === 1) {
      await this.#lose(cell);
      return cell.exec(request);
    }
    const exec = await cell.exec(request);
    void this.#lose(cell);
    return exec;
  }
}

/** More than there are commands between the end of an agent and the next task. */
const TASKS = 18;
const IDS = Array.from({ length: TASKS }, (_, number) => `T${String(number).padStart(2, '0')}`);

const stack = new AsyncDisposableStack();
beforeAll(async () => {
  if (whyNoEngine() === undefined) await useWorkerImage(stack);
});
afterAll(() => stack.disposeAsync());

type WalledWay = 'oci' | 'docker';

function make(tasks: readonly TestTask[]): FleetRepository {
  const workers = { max_respawn_attempts: TASKS };
  return stack.use(FleetRepository.make({ tasks, config: { workers } }));
}

/** A fleet with one worker, led from here, to its end. */
async function lead(
  repository: FleetRepository,
  driver: WalledWay,
  exec: ExecInCell,
): Promise<{ outcome: unknown; events: string[] }> {
  const env = { HOTCELL_STATE_DIR: repository.state, PATH: process.env['PATH'] ?? '' };
  const flags = driver === 'docker' ? { 'docker.host': engineHost() } : {};
  const { config: settings } = readConfig({ env, cwd: repository.root, flags });
  const machine: FleetMachine = {
    env,
    home: repository.home,
    volumes: WORKTREE_VOLUMES,
    drivers: WORKER_DRIVERS,
    openSite: async (config, wish, hooks) => {
      const site = await openFleetSite(settings, config, wish, hooks);
      return { ...site, driver: withExec(site.driver, exec) };
    },
    reclaimCells: () => Promise.resolve([]),
  };
  const events: string[] = [];
  const signal = new AbortController().signal;
  const { outcome } = await runFleet(
    machine,
    { folder: repository.root, mode: 'container', driver, workers: 1, resume: false, signal },
    {
      log: SILENT_LOG,
      onProgress: () => {},
      onNote: () => {},
      onDetail: () => {},
      onEvent: (event, data) => events.push(`${event} ${JSON.stringify(data)}`),
    },
  );
  return { outcome, events };
}

interface Gap {
  readonly driver: WalledWay;
  readonly lose: Lose;
  /** Of each task. */
  readonly script?: readonly Step[];
  /** Of each task. */
  readonly commits?: number;
}

/** Whatever is lost when: each task is done once. */
async function loseInEachGap(
  { driver, lose, script, commits = 1 }: Gap,
  round: number,
): Promise<FleetRepository> {
  const repository = make(IDS.map((id) => toTask(id, 1, script)));
  const faulty = new FaultyCells(lose, round);
  const { outcome, events } = await lead(repository, driver, faulty.exec);
  const { tasks } = repository.readState();
  const told = { lost: faulty.lost, events, errors: Object.values(tasks).map(({ error }) => error) };
  expect({ outcome, ...told }).toEqual({ outcome: { kind: 'complete' }, ...told });
  expect({ committed: repository.committed(), ...told }).toEqual({
    committed: IDS.flatMap((id) => Array.from({ length: commits }, () => id)),
    ...told,
  });
  expect(Object.values(tasks).map(({ retry_count: failures }) => failures)).toEqual(IDS.map(() => 0));
  // All the moments that there are: each task up to one was hit, and none after it could be.
  const last = Math.max(...faulty.lost);
  expect(faulty.lost.toSorted((one, other) => one - other)).toEqual(
    Array.from({ length: last + 1 }, (_, n) => n),
  );
  expect(last).toBeGreaterThan(5);
  expect(last).toBeLessThan(TASKS - 1);
  const { engine } = WAYS[driver];
  await untilNothingIsLeft(repository, [{ pid: process.pid, instances: new Set() }], engine);
  return repository;
}

const dispose: Lose = (cell) => cell.dispose();
const kill =
  (driver: WalledWay): Lose =>
  (cell) =>
    KILL_CELL[driver](cell.id);

describe('a commit is final', { timeout: 900_000 }, () => {
  const GAPS: readonly (Gap & { readonly name: string; readonly rounds: number })[] = [
    { name: 'ended', driver: 'oci', lose: dispose, rounds: howOften(1, 20) },
    { name: 'killed', driver: 'oci', lose: kill('oci'), rounds: howOften(1, 20) },
    { name: 'killed', driver: 'docker', lose: kill('docker'), rounds: howOften(1, 6) },
  ];
  for (const { name, rounds, ...gap } of GAPS)
    testThatNeeds(WAYS[gap.driver].missing)(
      `[FL-12, FL-15] whenever the cell is ${name} between the end of the agent and the next task (${gap.driver}), nothing is done twice`,
      async () => {
        for (let round = 0; round < rounds; round++) await loseInEachGap(gap, round);
      },
    );

  testThatNeeds(whyNoOci)(
    '[FL-12, FL-15, FL-03] nor what an agent has done so far, and what it said of the rest is not forgotten',
    async () => {
      const script: Step[] = [
        ['append', 'half.txt', 'half\n'],
        ['checkpoint', 'the other half'],
      ];
      const gap = { driver: 'oci', lose: kill('oci'), script, commits: 2 } as const;
      for (let round = 0; round < howOften(1, 10); round++) {
        const repository = await loseInEachGap(gap, round);
        for (const id of IDS)
          expect(repository.report(id)).toMatchObject({ task: id, goesOn: true, said: 'the other half' });
      }
    },
  );

  testThatNeeds(whyNoOci)(
    '[FL-12, FL-15] nor while its place is tidied, however long that takes',
    async () => {
      const repository = make([toTask('A', 1), toTask('B', 2)]);
      let hadAgent = false;
      const states: unknown[] = [];
      const { outcome } = await lead(repository, 'oci', async (cell, request) => {
        hadAgent ||= request.verbatim?.env['MAHABHARATHA_TASK_ID'] === 'A';
        if (!hadAgent || states.length > 0 || request.argv[0] !== 'find') return cell.exec(request);
        const exec = await cell.exec({ argv: ['sleep', '1000000'], env: {} });
        states.push(repository.task('A'), repository.countCommits());
        await KILL_CELL.oci(cell.id);
        return exec;
      });
      expect(outcome).toEqual({ kind: 'complete' });
      expect(states).toEqual([expect.objectContaining({ status: 'complete' }), { A: 1 }]);
      expect(repository.task('A')).toMatchObject({ status: 'complete', retry_count: 0 });
      expect(repository.task('A')?.losses ?? 0).toBe(0);
      expect(repository.committed()).toEqual(['A', 'B']);
      await untilNothingIsLeft(repository, []);
    },
  );
});
