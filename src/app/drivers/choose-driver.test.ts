import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Driver, Probe } from '../../core/driver.ts';
import { PROMISES, type Enforcement } from '../../core/enforcement.ts';
import { HotcellError } from '../../core/errors.ts';
import { SILENT_LOG } from '../../core/log.ts';
import { chooseDriver, driversToTry, probeDriver, serves } from './choose-driver.ts';
import { Config } from '../config/config.ts';
import type * as makeDrivers from './make-drivers.ts';
import { DRIVER_NAMES, type DriverName } from '../../drivers/registry.ts';

const HOOKS = { log: SILENT_LOG, onProgress: () => {} };
const configOf = (settings: object): Config => Config.parse(settings);
const promiseAll = (by: 'kernel' | 'nobody'): Enforcement =>
  Object.fromEntries(PROMISES.map((promise) => [promise, by])) as Enforcement;

const GOOD: Probe = { ok: true, runtime: 'x 1.0', enforcement: promiseAll('kernel'), notes: [] };
const NO_SYSCALLS: Probe = { ...GOOD, enforcement: { ...promiseAll('kernel'), syscalls: 'nobody' } };
const WITHOUT_WALLS: Probe = { ...GOOD, enforcement: promiseAll('nobody') };
const bad = (problem: string): Probe => ({ ok: false, problem, remedy: `mend ${problem}` });

/** What each driver says of itself on the machine of the test; who is not named may not even be asked. */
let machine: Partial<Record<DriverName, Probe | Error>> = {};
let asked: DriverName[] = [];

/** The drivers of a machine that no test could have: they only answer the probe. */
vi.mock('./make-drivers.ts', async (original) => {
  const real = await original<typeof makeDrivers>();
  const make: typeof real.makeDriver = async (name, config, hooks) => {
    if (Object.keys(machine).length === 0) return real.makeDriver(name, config, hooks);
    asked.push(name);
    const answer = machine[name];
    if (answer === undefined) throw new Error(`nobody may ask for ${name} here`);
    if (answer instanceof HotcellError) throw answer;
    const probe = () => (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer));
    return { name, probe } as unknown as Driver;
  };
  return { ...real, makeDriver: make };
});

const ownPlatform = process.platform;
const pretend = (platform: string) => Object.defineProperty(process, 'platform', { value: platform });
beforeEach(() => {
  machine = {};
  asked = [];
  pretend('linux');
});
afterEach(() => pretend(ownPlatform));

async function failureOf(settings: object): Promise<HotcellError> {
  const end = await chooseDriver(configOf(settings), HOOKS).catch((error: unknown) => error);
  if (!(end instanceof HotcellError)) throw new Error(`no failure of ours: ${String(end)}`);
  return end;
}

describe('the order', () => {
  test.each([
    ['linux', ['oci', 'docker']],
    ['darwin', ['apple', 'docker']],
    ['win32', ['docker']],
  ])('[SC-04] without a word of the operator, on %s', (platform, names) => {
    expect(driversToTry(configOf({}), platform)).toEqual(names);
  });

  test('[SC-04] auto is never preload or subprocess, whatever was given up', () => {
    const config = configOf({ driver: 'auto', weaker: PROMISES });
    for (const platform of ['linux', 'darwin', 'win32', 'freebsd']) {
      expect(driversToTry(config, platform)).not.toContain('subprocess');
      expect(driversToTry(config, platform)).not.toContain('preload');
    }
  });

  test.each(DRIVER_NAMES)(
    '[SC-04] %s can be asked for by its name, and then nothing else is tried',
    (driver) => {
      expect(driversToTry(configOf({ driver }), 'linux')).toEqual([driver]);
    },
  );
});

describe('auto', () => {
  test('[SC-04] takes the first that serves, and does not ask the others', async () => {
    machine = { oci: GOOD };
    const { driver, probe, reason } = await chooseDriver(configOf({}), HOOKS);
    expect({ name: driver.name, probe, reason, asked }).toEqual({
      name: 'oci',
      probe: GOOD,
      reason: 'auto: the first choice here',
      asked: ['oci'],
    });
  });

  test.each<[string, Probe | Error, string]>([
    ['cannot serve', bad('no crun'), 'auto: the oci driver cannot serve: no crun'],
    ['does not keep a promise', NO_SYSCALLS, 'auto: nobody enforces: syscalls'],
    ['breaks at its probe', new Error('EMFILE'), 'auto: the oci driver cannot serve: EMFILE'],
    ['cannot be set up', new HotcellError('CONFIG_INVALID', 'stateDir: bad'), 'auto: stateDir: bad'],
  ])('[SC-04, CX-11] falls to the next when the first %s, and says why', async (_what, oci, reason) => {
    machine = { oci, docker: GOOD };
    const choice = await chooseDriver(configOf({}), HOOKS);
    expect({ name: choice.driver.name, reason: choice.reason }).toEqual({ name: 'docker', reason });
  });

  test('[SC-04] what was given up by name is no reason to fall', async () => {
    machine = { oci: NO_SYSCALLS, docker: GOOD };
    const { driver } = await chooseDriver(configOf({ weaker: ['syscalls'] }), HOOKS);
    expect({ name: driver.name, asked }).toEqual({ name: 'oci', asked: ['oci'] });
  });

  test('[SC-04] on another system begins with docker', async () => {
    pretend('freebsd');
    machine = { oci: GOOD, docker: GOOD };
    const { driver, reason } = await chooseDriver(configOf({}), HOOKS);
    expect([driver.name, reason, asked]).toEqual(['docker', 'auto: the first choice here', ['docker']]);
  });

  test.each<[string, Probe, string, string]>([
    ['serves', GOOD, 'apple', 'auto: the first choice here'],
    [
      'has services that do not run',
      bad('container system start'),
      'docker',
      'auto: the apple driver cannot serve: container system start',
    ],
  ])(
    "[MC-03, SC-04] on macOS Apple's container comes first; one that %s",
    async (_what, apple, name, reason) => {
      pretend('darwin');
      machine = { apple, docker: GOOD };
      const choice = await chooseDriver(configOf({}), HOOKS);
      expect([choice.driver.name, choice.reason]).toEqual([name, reason]);
    },
  );

  test('[SC-04] does not end with a driver without walls, even if all was given up', async () => {
    machine = { oci: bad('no crun'), docker: bad('no engine'), subprocess: WITHOUT_WALLS };
    await failureOf({ weaker: PROMISES });
    expect(asked).toEqual(['oci', 'docker']);
  });
});

describe('when none serves', () => {
  test('[CX-11] every problem is told, the most wanted first, each with its remedy', async () => {
    machine = { oci: bad('no crun'), docker: bad('no engine') };
    expect(await failureOf({})).toMatchObject({
      code: 'DRIVER_UNAVAILABLE',
      message: 'the oci driver cannot serve: no crun; the docker driver cannot serve: no engine',
      hint: 'mend no crun\nmend no engine',
    });
  });

  test('[CX-11, SC-04] a promise that nobody keeps names what would have to be given up', async () => {
    machine = { oci: NO_SYSCALLS, docker: bad('no engine') };
    const failure = await failureOf({});
    expect(failure.code).toBe('POLICY_UNENFORCEABLE');
    expect(failure.message).toBe('nobody enforces: syscalls');
    expect(failure.hint).toMatch(/--weaker syscalls\nmend no engine$/);
  });

  test('[CX-11] a driver that was asked for by name tells only its own problem', async () => {
    machine = { docker: bad('no engine'), oci: GOOD };
    expect(await failureOf({ driver: 'docker' })).toMatchObject({
      message: 'the docker driver cannot serve: no engine',
      hint: 'mend no engine',
    });
  });

  test('[SC-04] subprocess by its name needs every promise to be given up', async () => {
    machine = { subprocess: WITHOUT_WALLS };
    expect((await failureOf({ driver: 'subprocess' })).code).toBe('POLICY_UNENFORCEABLE');
    const choice = await chooseDriver(configOf({ driver: 'subprocess', weaker: PROMISES }), HOOKS);
    expect([choice.driver.name, choice.reason]).toEqual(['subprocess', 'as configured']);
  });
});

describe('for doctor', () => {
  test('[WB-02] a driver that cannot be set up is a probe that failed', async () => {
    machine = {
      docker: new HotcellError('CONFIG_INVALID', 'docker.host: no such scheme', { hint: 'use unix://' }),
    };
    expect(await probeDriver('docker', configOf({}), HOOKS)).toEqual({
      ok: false,
      problem: 'docker.host: no such scheme',
      remedy: 'use unix://',
    });
  });

  test.each<[string, Probe, object, boolean]>([
    ['serves', GOOD, {}, true],
    ['does not answer', bad('no crun'), {}, false],
    ['keeps a promise less', NO_SYSCALLS, {}, false],
    ['keeps a promise less, given up', NO_SYSCALLS, { weaker: ['syscalls'] }, true],
  ])('[WB-02] a driver that %s', (_what, probe, settings, expected) => {
    expect(serves(probe, configOf(settings))).toBe(expected);
  });

  test('[WB-02] the real docker driver names the socket that nobody listens on', async () => {
    const config = configOf({ driver: 'docker', docker: { host: 'unix:///nonexistent/docker.sock' } });
    const probe = await probeDriver('docker', config, HOOKS);
    expect(probe).toMatchObject({
      ok: false,
      remedy: expect.stringContaining('systemctl start docker') as string,
    });
    const failure = await failureOf({
      driver: 'docker',
      docker: { host: 'unix:///nonexistent/docker.sock' },
    });
    expect(failure.message).toContain('unix:///nonexistent/docker.sock');
  });
});
