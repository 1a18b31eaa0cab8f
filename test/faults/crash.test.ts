import { randomInt } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { howOften } from '../support/endurance.ts';
import { PROGRAMS } from '../support/programs.ts';
import {
  cellProcesses,
  countMarked,
  describeTraces,
  expectServes,
  instancesOf,
  makeMarker,
  runCode,
  settle,
  startServer,
  stopClean,
} from '../support/live-server.ts';
import { findTraces, waitFor } from '../support/leftovers.ts';
import { findCells, type CellProcesses } from '../support/oci-cells.ts';
import { descendantsOf, signalAll } from '../support/processes.ts';
import { OCI_FRESH } from '../support/served-by.ts';
import { ServedSessions } from '../support/session-site.ts';
import { TestServer, makeStateDirectory, removeFolders } from '../support/server.ts';

/** What is on the host of these instances, their folders apart: those may hold the ones of a living server. */
function tracesOf(stateDirectory: string, instances: readonly string[]): string[] {
  const { cgroups, folders } = findTraces(stateDirectory, instances);
  const isTheirs = (text: string): boolean => instances.some((id) => text.includes(id));
  return [...cgroups, ...folders]
    .filter(isTheirs)
    .concat(cellProcesses(instances).map((pid) => `pid ${pid}`));
}

function cellsOf({ stateDirectory }: TestServer): CellProcesses[] {
  const [instance = ''] = instancesOf(stateDirectory);
  return findCells(stateDirectory, instance);
}

describe('kill -9 of the server', () => {
  test('[SC-02, CX-16] under load, at any moment: the next start finds and removes everything', async () => {
    const stateDirectory = makeStateDirectory();
    for (let round = 0; round < howOften(3, 20); round++) {
      const server = await TestServer.start({ stateDirectory });
      const marker = makeMarker();
      const load = PROGRAMS.flatMap(({ language, loops }) => [
        server.execute(language, { code: loops, timeout_ms: 30_000 }),
        server.execute('bash', { code: `setsid sleep ${marker} & sleep ${marker}`, timeout_ms: 30_000 }),
      ]);
      const ends = Promise.allSettled(load);
      // At a moment of its own each time: amid boots, amid runs, or amid both.
      await sleep(randomInt(0, 400));
      const instances = instancesOf(stateDirectory);
      expect(instances).toHaveLength(1);
      await server.stop('SIGKILL');
      await ends;

      const next = await startServer({ stateDirectory });
      await expectServes(next);
      expect({ round, left: tracesOf(stateDirectory, instances), marked: countMarked(marker) }).toEqual({
        round,
        left: [],
        marked: 0,
      });
      await settle(next);
      expect(await next.stop()).toBe(0);
      expect(describeTraces(stateDirectory, instances)).toEqual([]);
    }
    removeFolders(stateDirectory);
  });

  test('[SC-02] a living server with the same state directory is not touched', async () => {
    const stateDirectory = makeStateDirectory();
    const doomed = await startServer({ stateDirectory });
    const [doomedId = ''] = instancesOf(stateDirectory);
    const living = await startServer({ stateDirectory });
    const [livingId = ''] = instancesOf(stateDirectory).filter((id) => id !== doomedId);
    await waitFor('the cells of the living one are there', () => cellProcesses([livingId]).length >= 10);
    const running = runCode(living, 'python', "import time\ntime.sleep(6)\nprint('unhurt')");
    await doomed.stop('SIGKILL');
    const third = await startServer({ stateDirectory });
    expect(tracesOf(stateDirectory, [doomedId])).toEqual([]);
    expect(existsSync(join(stateDirectory, livingId))).toBe(true);
    await Promise.all([expectServes(living), expectServes(third)]);
    expect(await running).toMatchObject({ stdout: 'unhurt\n', exit_code: 0 });
    expect((await runCode(living, 'bash', 'echo still')).receipt.warm).toBe(true);
    await Promise.all([stopQuietly(third), stopQuietly(living)]);
    expect(describeTraces(stateDirectory, [doomedId, livingId])).toEqual([]);
    removeFolders(stateDirectory);
  });
});

/** Two servers share the folder, so cells cannot be counted there: wait until this one's pools are full. */
async function stopQuietly(server: TestServer): Promise<void> {
  const isFull = async (): Promise<boolean> => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    return [...text.matchAll(/^hotcell_cells_ready\{.*\} (\d+)$/gm)].every(([, cells]) => Number(cells) >= 2);
  };
  await waitFor('the pools are full', isFull);
  expect(await server.stop()).toBe(0);
}

describe('kill -9 of cells', () => {
  /** Kills that process of every waiting cell and asks at once, in all languages. */
  async function killWaiting(which: 'init' | 'runtime'): Promise<void> {
    const server = await startServer();
    await settle(server);
    const cells = cellsOf(server);
    for (const cell of cells) process.kill(cell[which], 'SIGKILL');
    const answers = await Promise.all(
      PROGRAMS.map(({ language, exit7 }) => server.execute(language, { code: exit7 })),
    );
    await settle(server);
    const { status } = await server.health();
    await expectServes(server);
    await stopClean(server);
    expect({ killed: cells.length, status }).toEqual({ killed: 10, status: 'ok' });
    expect(answers.map(({ body }) => body.exit_code)).toEqual(PROGRAMS.map(() => 7));
  }

  // oxlint-disable-next-line vitest/expect-expect -- the expectations are in the helper
  test('[CX-16, SC-02] of the runtime of every waiting cell: replaced, and nobody notices', () =>
    killWaiting('runtime'));

  // oxlint-disable-next-line vitest/expect-expect -- the expectations are in the helper
  test('[CX-16, SC-02] of the init of every waiting cell: replaced, and nobody notices', () =>
    killWaiting('init'));

  test.each(['init', 'runtime'] as const)(
    '[CX-16, CX-08] of the %s during a run: 503 or the right answer, and the next is served',
    async (which) => {
      const server = await startServer({ languages: ['bash', 'python'] });
      await settle(server);
      const marker = makeMarker();
      const before = new Set(cellsOf(server).map((cell) => cell.init));
      expect(before.size).toBe(4);
      const pending = server.execute('bash', {
        code: `sleep ${marker} & sleep 3; echo done`,
        timeout_ms: 20_000,
      });
      await waitFor('it runs', () => countMarked(marker) === 1);
      const cell = cellsOf(server).find(({ init }) =>
        readFileSync(`/proc/${init}/task/${init}/children`, 'utf8')
          .trim()
          .split(' ')
          .some((child) => isParentOf(child, marker)),
      );
      expect(cell).toBeDefined();
      process.kill(cell?.[which] ?? Number.NaN, 'SIGKILL');
      const { status, body } = await pending;
      const told = status === 200 ? [body.stdout, body.exit_code] : [status, body.code, body.exit_code];
      expect([
        ['done\n', 0],
        [503, 'CELL_LOST', -1],
      ]).toContainEqual(told);
      await waitFor('nothing of the lost one runs', () => countMarked(marker) === 0);
      await expectServes(server);
      await stopClean(server);
    },
  );
});

function killKeepers({ process: { pid = 0 } }: TestServer): number {
  const keepers = descendantsOf(pid).filter(({ words }) => words.includes('keeper.bash'));
  signalAll(
    keepers.map((keeper) => keeper.pid),
    'SIGKILL',
  );
  return keepers.length;
}

test('[SC-02, CX-16] kill -9 of the helpers that start runtimes: all goes on, and nothing is left', async () => {
  await using served = await ServedSessions.open({ way: OCI_FRESH });
  const { server } = served;
  const before = await served.door().create();
  await expectServes(server);
  expect(killKeepers(server)).toBeGreaterThanOrEqual(2);
  const after = await served.door().create();
  await Promise.all([before.expectUsable(), after.expectUsable(), expectServes(server)]);
  // What runs is ended without them, too.
  killKeepers(server);
  await Promise.all([before.remove(), expectServes(server)]);
});

function isParentOf(pid: string, marker: string): boolean {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    return children.some((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8').includes(marker));
  } catch {
    return false;
  }
}

describe('state', () => {
  test('[CX-08] a state directory that vanishes: no hang, no false success, and the end is an end', async () => {
    const server = await startServer({ languages: ['bash'] });
    await settle(server);
    const instances = instancesOf(server.stateDirectory);
    removeFolders(server.stateDirectory);
    // More than the waiting cells, so that new ones have to be made.
    for (let round = 0; round < 6; round++) {
      const { status, body } = await server.execute('bash', { code: 'echo fine' });
      expect([200, 500, 503]).toContain(status);
      expect(body.exit_code === 0 ? body.stdout : 'fine\n').toBe('fine\n');
    }
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    await Promise.race([server.stop(), sleep(20_000).then(() => server.stop('SIGKILL'))]);
    await waitFor('no process of it is left', () => cellProcesses(instances).length === 0);
    expect(findTraces(server.stateDirectory, instances).cgroups).toEqual([]);
    removeFolders(server.stateDirectory);
  });

  test('[CX-08] after a state directory vanished, failures are told as ours and the server recovers', async () => {
    const server = await startServer({ languages: ['bash'] });
    await settle(server);
    removeFolders(server.stateDirectory);
    const ends: string[] = [];
    for (let round = 0; round < 6; round++) {
      const { status, body } = await server.execute('bash', { code: 'echo fine' });
      ends.push(status === 200 ? body.stdout : `${body.code} ${body.exit_code}`);
    }
    await server.stop();
    removeFolders(server.stateDirectory);
    expect(
      ends.filter(
        (end) => end !== 'fine\n' && !/^(?:CELL_LOST|CELL_START_FAILED|DRIVER_UNAVAILABLE) -1$/.test(end),
      ),
    ).toEqual([]);
    expect(ends.at(-1)).toBe('fine\n');
  });
});
