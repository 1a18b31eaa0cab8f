import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect } from 'vitest';
import type { AppleDriver } from '../../src/drivers/apple/driver.ts';
import { bash, finish, readLine, survivors } from '../contract/cells.ts';
import { AppleDouble, IMAGE, whyNoDouble } from '../support/apple-double/apple-double.ts';
import { idleSpec, makeAppleDriver } from '../support/apple-driver.ts';
import { waitFor } from '../support/leftovers.ts';
import { testThatNeeds } from '../support/needs.ts';

const test = testThatNeeds(whyNoDouble());
const CHILD = fileURLToPath(new URL('apple-child.ts', import.meta.url));

const double = new AppleDouble();
const drivers: AppleDriver[] = [];
const makeDriver = (): AppleDriver => {
  const driver = makeAppleDriver(double);
  drivers.push(driver);
  return driver;
};
afterEach(async () => {
  double.state.clearFaults();
  double.control({ services: 'running' });
  for (const driver of drivers.splice(0)) await driver.close();
  expect(double.ids()).toEqual([]);
});
afterAll(() => double[Symbol.asyncDispose]());

/** Processes of this machine by a part of their command line. */
function pidsOf(...parts: readonly string[]): number[] {
  const isWanted = (pid: string): boolean => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      return parts.every((part) => line.includes(part));
    } catch {
      return false;
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter(isWanted)
    .map(Number);
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('a cell that is ended from outside', () => {
  test('[MC-08, CX-16] removed: whoever waits hears of it, and the next cell is made', async () => {
    const driver = makeDriver();
    const cell = await driver.create(idleSpec());
    const exec = await cell.exec(bash('echo up; sleep 1000'));
    await readLine(exec);
    double.run('delete', '--force', cell.id);
    await expect(finish(exec)).rejects.toMatchObject({ code: 'CELL_LOST' });
    await cell.gone;
    expect(driver.list()).toEqual([]);
    await expect(cell.exec(bash('true'))).rejects.toMatchObject({ code: 'CELL_LOST' });
    const next = await driver.create(idleSpec());
    const { stdout } = await finish(await next.exec(bash('echo again')));
    expect(stdout).toBe('again\n');
  });

  test('[MC-13, SC-02] its command killed: the container, which goes on, is removed', async () => {
    const driver = makeDriver();
    const cell = await driver.create(idleSpec());
    const exec = await cell.exec(bash('echo up; sleep 1000'));
    await readLine(exec);
    const calls = pidsOf('container.ts', ' run ', cell.id);
    expect(calls).toHaveLength(1);
    for (const pid of calls) process.kill(pid, 'SIGKILL');
    await expect(finish(exec)).rejects.toMatchObject({ code: 'CELL_LOST' });
    await cell.gone;
    expect(double.ids()).toEqual([]);
  });

  test('[MC-13] the services stopped: a clear failure with the remedy, and served again when they are back', async () => {
    const driver = makeDriver();
    const cell = await driver.create(idleSpec());
    const exec = await cell.exec(bash('echo up; sleep 1000'));
    await readLine(exec);
    expect(double.run('system', 'stop').code).toBe(0);
    await expect(finish(exec)).rejects.toMatchObject({
      code: expect.stringMatching(/^(CELL_LOST|DRIVER_UNAVAILABLE)$/),
    });
    await cell.gone;
    await expect(driver.create(idleSpec())).rejects.toMatchObject({
      code: 'DRIVER_UNAVAILABLE',
      hint: expect.stringContaining('container system start') as string,
    });
    expect(driver.problem()).toContain('do not run');
    const callsBefore = double.calls().filter(([word]) => word === 'run').length;
    // Known by now: nobody asks again for it.
    await failureOf(driver.create(idleSpec()));
    expect(double.calls().filter(([word]) => word === 'run')).toHaveLength(callsBefore);
    double.run('system', 'start', '--enable-kernel-install');
    await waitFor('the problem is gone', () => driver.problem() === undefined);
    const next = await driver.create(idleSpec());
    expect((await finish(await next.exec(bash('echo back')))).stdout).toBe('back\n');
  });
});

describe('a command that misbehaves', () => {
  test('[MC-13] a slow start is waited for', async () => {
    double.fault({ command: 'run', delayMs: 3000 });
    const cell = await makeDriver().create(idleSpec());
    expect((await finish(await cell.exec(bash('echo late')))).stdout).toBe('late\n');
  });

  test('[MC-13] a start that hangs is given up, and its command does not stay', async () => {
    double.fault({ command: 'run', hang: true });
    const driver = makeDriver();
    await expect(driver.create(idleSpec())).rejects.toMatchObject({ code: 'CELL_START_FAILED' });
    await waitFor('the command is gone', () => double.processes().length === 0);
    expect(driver.list()).toEqual([]);
  });

  test('[MC-13, SC-02] a removal that hangs holds nobody up, and is made up for', async () => {
    const driver = makeDriver();
    const cell = await driver.create(idleSpec());
    double.fault({ command: 'delete', hang: true });
    await cell.dispose();
    await cell.gone;
    await waitFor('the hung call is gone', () => pidsOf('container.ts', 'delete', cell.id).length === 0);
    await waitFor(
      'what was left is removed when the services answer',
      () => double.ids().length === 0,
      30_000,
    );
  });

  test('[MC-13, SC-02] a removal that fails is tried again', async () => {
    const driver = makeDriver();
    const cell = await driver.create(idleSpec());
    const stderr =
      'Error: internalError: "failed to delete container" (cause: "invalidState: "container is stopping"")\n';
    for (const exitCode of [1, 1]) double.fault({ command: 'delete', exitCode, stderr });
    await cell.dispose();
    expect(double.ids()).toEqual([]);
  });

  test('[SC-02] a name that somebody else has: that one is not touched', async () => {
    const stderr = 'Error: container with id taken already exists\n';
    double.fault({ command: 'run', exitCode: 1, stderr });
    const removals = (): number => double.calls().filter(([word]) => word === 'delete').length;
    const before = removals();
    const driver = makeDriver();
    await expect(driver.create(idleSpec())).rejects.toMatchObject({ code: 'CELL_START_FAILED' });
    expect([removals() - before, driver.list()]).toEqual([0, []]);
  });

  test.each(['1.0.0', '1.3.1', '1.4.1'])('[MC-13] version %s serves', async (version) => {
    double.control({ version });
    const driver = makeDriver();
    const cell = await driver.create(idleSpec());
    expect((await finish(await cell.exec(bash('echo ok')))).stdout).toBe('ok\n');
    expect(await driver.reclaim()).toEqual([]);
    expect(cell.isolation).toMatchObject({ driver: 'apple', runtime: `container ${version}` });
    await cell.dispose();
    double.control({ version: '1.2.2' });
  });
});

describe('kill -9 of the server', () => {
  const suffix = Math.random().toString(16).slice(2, 10);

  async function startServer(): Promise<{ id: string; marker: string; kill: () => Promise<void> }> {
    const marker = `apple-victim-${Math.random().toString(16).slice(2)}`;
    const child = spawn(process.execPath, [CHILD, double.cli, marker], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const kill = async (): Promise<void> => {
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
    };
    return { id: line.toString().trim(), marker, kill };
  }

  test('[SC-02, MC-09] its cells end by themselves', async () => {
    const { id, marker, kill } = await startServer();
    await waitFor('the program runs', () => survivors(marker).length > 0);
    await kill();
    await waitFor('the program is gone', () => survivors(marker).length === 0);
    await waitFor('the container is gone', () => !double.ids().includes(id));
  });

  test('[SC-02] the next start removes what is left, and nothing of strangers and the living', async () => {
    const strangers = [
      ['--name', `stranger-${suffix}`],
      ['--name', `lookalike-${suffix}`, '--label', 'hotcell.owner=somebody'],
      [
        '--name',
        `other-${suffix}`,
        '--label',
        'hotcell.owner=somebody',
        '--label',
        'hotcell.process=nonsense',
      ],
    ].map((options) => {
      double.run('run', '-d', '--progress', 'none', ...options, '--entrypoint', 'sleep', IMAGE, '1000');
      return options[1] ?? '';
    });
    const living = makeDriver();
    const cell = await living.create(idleSpec());
    const { id, marker, kill } = await startServer();
    // With the command dead at the same moment nobody tells the container that its input has ended.
    for (const pid of pidsOf('container.ts', ' run ', id)) process.kill(pid, 'SIGSTOP');
    await kill();
    for (const pid of pidsOf('container.ts', ' run ', id)) process.kill(pid, 'SIGKILL');
    expect(double.ids()).toContain(id);
    expect(survivors(marker)).toHaveLength(1);

    const next = makeDriver();
    expect(await next.reclaim()).toEqual([id]);
    expect(double.ids()).toEqual([...strangers, cell.id].toSorted());
    await waitFor('the program is gone', () => survivors(marker).length === 0);
    expect((await finish(await cell.exec(bash('echo alive')))).stdout).toBe('alive\n');
    double.run('delete', '--force', ...strangers);
  });
});

describe('what cannot be had is refused', () => {
  test('[SC-04] a cell that outlives the server', async () => {
    const driver = makeDriver();
    const spec = { ...idleSpec(), lasting: { store: '0123456789ab' } };
    await expect(driver.create(spec)).rejects.toMatchObject({ code: 'SESSIONS_UNAVAILABLE' });
    expect('lasting' in driver).toBe(false);
  });

  test('[MC-13] an image without the interpreter of the agent is named', async () => {
    const image = double.state.findImage(IMAGE);
    if (image === undefined) throw new Error('the double has no image');
    double.state.addImage({
      ...image,
      reference: 'docker.io/library/bare:latest',
      config: { ...image.config, Env: ['PATH=/opt/tools'] },
    });
    const spec = idleSpec({}, { name: 'bare', recipe: undefined });
    await expect(makeDriver().create(spec)).rejects.toMatchObject({
      code: 'CELL_START_FAILED',
      message: 'image bare has no perl, which the agent of a cell needs',
    });
  });
});
