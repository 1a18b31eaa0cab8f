import { afterAll, describe, expect } from 'vitest';
import { readConfig } from '../../src/app/config/read-config.ts';
import { WORKER_DRIVERS } from '../../src/app/drivers/driver-choices.ts';
import { openFleetSite } from '../../src/app/fleet/open-fleet.ts';
import type { Cell } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import type { FleetMachine } from '../../src/fleet/fleet-machine.ts';
import { runFleet } from '../../src/fleet/run/run-fleet.ts';
import { howOften } from '../support/endurance.ts';
import { untilNothingIsLeft } from '../support/fleet-remains.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { whyNoOci } from '../support/fleet-ways.ts';
import { testThatNeeds } from '../support/needs.ts';

/** The first cell is lost with the command of this number after the end of the agent of task A. */
interface Moment {
  readonly command: number;
  /** Before it is started, or while it runs. */
  readonly when: 'before' | 'during';
}

/** A driver whose first cell is lost at one moment. */
class FaultyDriver {
  /** Commands after the agent of the first task, and before that of the next one. */
  commands = 0;
  #agents = 0;
  readonly #moment: Moment | undefined;

  constructor(moment: Moment | undefined) {
    this.#moment = moment;
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
        if (name === 'exec') return (...args: Parameters<Cell['exec']>) => this.#exec(target, ...args);
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  }

  async #exec(cell: Cell, ...args: Parameters<Cell['exec']>): ReturnType<Cell['exec']> {
    if (args[0].argv.some((word) => word.endsWith('with-credentials.pl'))) this.#agents++;
    else if (this.#agents === 1 && this.commands++ === this.#moment?.command) return this.#lose(cell, args);
    return cell.exec(...args);
  }

  async #lose(cell: Cell, args: Parameters<Cell['exec']>): ReturnType<Cell['exec']> {
    if (this.#moment?.when === 'before') {
      await cell.dispose();
      return cell.exec(...args);
    }
    const exec = await cell.exec(...args);
    void cell.dispose();
    return exec;
  }
}

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

/** Two tasks, one worker, a cell of oci that is lost at this moment. Returns how many commands there were to be lost at. */
async function runWith(moment: Moment | undefined): Promise<number> {
  const repository = stack.use(FleetRepository.make({ tasks: [toTask('A', 1), toTask('B', 1)] }));
  const faulty = new FaultyDriver(moment);
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
  const told = {
    moment,
    events,
    errors: Object.values(repository.readState().tasks).map(({ error }) => error),
  };
  expect({ outcome, ...told }).toEqual({ outcome: { kind: 'complete' }, ...told });
  const ids = repository.git(
    'log',
    repository.branch('staging'),
    '--format=%(trailers:key=Task-ID,valueonly)',
  );
  expect({ commits: ids.split('\n').filter(Boolean).toSorted(), ...told }).toEqual({
    commits: ['A', 'B'],
    ...told,
  });
  expect({ attempts: repository.task('A')?.retry_count, ...told }).toEqual({ attempts: 0, ...told });
  await untilNothingIsLeft(repository, []);
  return faulty.commands;
}

describe('a commit is final', { timeout: 600_000 }, () => {
  testThatNeeds(whyNoOci)(
    '[FL-12, FL-15] whenever the cell is lost between the end of the agent and the next task, nothing is done twice',
    async () => {
      const commands = await runWith(undefined);
      expect(commands).toBeGreaterThan(5);
      for (let round = 0; round < howOften(1, 20); round++)
        for (let command = 0; command < commands; command++)
          await runWith({ command, when: (round + command) % 2 === 0 ? 'during' : 'before' });
    },
  );
});
