import { afterAll, describe, expect } from 'vitest';
import { readConfig } from '../../src/app/config/read-config.ts';
import { WORKER_DRIVERS } from '../../src/app/drivers/driver-choices.ts';
import { openFleetSite } from '../../src/app/fleet/open-fleet.ts';
import type { Cell } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import type { Exec, ExecRequest } from '../../src/core/exec.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import type { FleetMachine } from '../../src/fleet/fleet-machine.ts';
import { runFleet } from '../../src/fleet/run/run-fleet.ts';
import { howOften } from '../support/endurance.ts';
import { untilNothingIsLeft } from '../support/fleet-remains.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { whyNoOci } from '../support/fleet-ways.ts';
import { testThatNeeds } from '../support/needs.ts';

/** Of each task the cell is lost once, with the command of the number of the task after its agent. */
class FaultyDriver {
  /** The tasks whose cell was lost. */
  readonly lost: number[] = [];
  readonly #round: number;
  #task = -1;
  #commands = 0;

  /** In even rounds every other cell is lost while the command runs, in odd ones the others. */
  constructor(round: number) {
    this.#round = round;
  }

  wrap(driver: Driver): Driver {
    return new Proxy(driver, {
      get: (target, name) => {
        if (name === 'create')
          return async (...args: Parameters<Driver['create']>) =>
            this.#wrapCell(await target.create(...args));
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  }

  #wrapCell(cell: Cell): Cell {
    return new Proxy(cell, {
      get: (target, name) => {
        if (name === 'exec') return (request: ExecRequest) => this.#exec(target, request);
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  }

  async #exec(cell: Cell, request: ExecRequest): Promise<Exec> {
    const task = request.verbatim?.env['MAHABHARATHA_TASK_ID'];
    if (task !== undefined) {
      this.#task = Number(task.slice(1));
      this.#commands = 0;
    } else if (this.#task >= 0 && this.#commands++ === this.#task && !this.lost.includes(this.#task)) {
      this.lost.push(this.#task);
      return this.#lose(cell, request);
    }
    return cell.exec(request);
  }

  async #lose(cell: Cell, request: ExecRequest): Promise<Exec> {
    if ((this.#task + this.#round) % 2 === 1) {
      await cell.dispose();
      return cell.exec(request);
    }
    const exec = await cell.exec(request);
    void cell.dispose();
    return exec;
  }
}

/** More than there are commands between the end of an agent and the next task. */
const TASKS = 30;

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

async function runWith(round: number): Promise<void> {
  const ids = Array.from({ length: TASKS }, (_, number) => `T${String(number).padStart(2, '0')}`);
  const repository = stack.use(
    FleetRepository.make({
      tasks: ids.map((id) => toTask(id, 1)),
      config: { workers: { max_respawn_attempts: TASKS } },
    }),
  );
  const faulty = new FaultyDriver(round);
  const env = { HOTCELL_STATE_DIR: repository.state, PATH: process.env['PATH'] ?? '' };
  const { config: settings } = readConfig({ env, cwd: repository.root, flags: {} });
  const machine: FleetMachine = {
    env,
    home: repository.home,
    drivers: WORKER_DRIVERS,
    openSite: async (config, wish, hooks) => {
      const site = await openFleetSite(settings, config, wish, hooks);
      return { ...site, driver: faulty.wrap(site.driver) };
    },
    reclaimCells: () => Promise.resolve([]),
  };
  const events: string[] = [];
  const { outcome } = await runFleet(
    machine,
    {
      folder: repository.root,
      mode: 'container',
      driver: 'oci',
      workers: 1,
      resume: false,
      signal: new AbortController().signal,
    },
    {
      log: SILENT_LOG,
      onProgress: () => {},
      onNote: () => {},
      onDetail: () => {},
      onEvent: (event, data) => events.push(`${event} ${JSON.stringify(data)}`),
    },
  );
  const { tasks } = repository.readState();
  const told = { lost: faulty.lost, events, errors: Object.values(tasks).map(({ error }) => error) };
  expect({ outcome, ...told }).toEqual({ outcome: { kind: 'complete' }, ...told });
  const done = repository.git(
    'log',
    repository.branch('staging'),
    '--format=%(trailers:key=Task-ID,valueonly)',
  );
  expect({ commits: done.split('\n').filter(Boolean).toSorted(), ...told }).toEqual({
    commits: ids.toSorted(),
    ...told,
  });
  expect(Object.values(tasks).map(({ retry_count: failures }) => failures)).toEqual(ids.map(() => 0));
  // All the moments that there are: each task up to one was hit, and none after it could be.
  const last = Math.max(...faulty.lost);
  expect(faulty.lost.toSorted((one, other) => one - other)).toEqual(
    Array.from({ length: last + 1 }, (_, n) => n),
  );
  expect(last).toBeGreaterThan(5);
  expect(last).toBeLessThan(TASKS - 1);
  await untilNothingIsLeft(repository, []);
}

describe('a commit is final', { timeout: 600_000 }, () => {
  testThatNeeds(whyNoOci)(
    '[FL-12, FL-15] whenever the cell is lost between the end of the agent and the next task, nothing is done twice',
    async () => {
      for (let round = 0; round < howOften(1, 20); round++) await runWith(round);
    },
  );
});
