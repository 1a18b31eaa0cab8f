import { spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PROMISES } from '../../src/core/enforcement.ts';
import { describeFootprint } from '../support/footprint.ts';
import { expectServes, runCode, startServer, stopClean } from '../support/live-server.ts';
import { DOCKER_SHARED, describeEach, type Way } from '../support/served-by.ts';
import { COMPILE_CACHE, MAIN } from '../support/command.ts';
import {
  StartFailure,
  TestServer,
  dataDirectoryOf,
  makeStateDirectory,
  removeFolders,
} from '../support/server.ts';

const ONE_CELL = ['--set', 'pool.size=1'];
const NO_ENGINE = ['--set', 'docker.host=unix:///nowhere/docker.sock'];
const NO_OCI = ['--set', 'rootfs=/no/such/folder'];

interface Ended {
  readonly pid: number;
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

let state = '';
beforeAll(() => {
  state = makeStateDirectory();
});
afterAll(() => removeFolders(state));

/** The real command. */
async function hotcell(args: readonly string[], input = ''): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOTCELL_STATE_DIR: state,
      HOTCELL_SESSIONS_DIR: dataDirectoryOf(state),
      ...COMPILE_CACHE,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  child.stdin.end(input);
  const status = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { pid: child.pid ?? 0, status, ...output };
}

/** The same engine, but the driver is for the server to choose. */
function withAuto(way: Way): Way {
  const engine = way.args.slice(way.args.indexOf('--set'));
  return { ...way, args: ['--driver', 'auto', ...engine] };
}

describeEach([DOCKER_SHARED], (way) => {
  beforeAll(() => way.prepare());

  describe('auto', () => {
    test('[CX-11, CX-15] takes oci where it works, and says so', async () => {
      const auto: Way = { ...withAuto(way), driver: 'oci', singleUse: true };
      const server = await startServer({ way: auto, args: ONE_CELL });
      const reason = 'auto: the first choice here';
      expect(await server.health()).toMatchObject({
        driver: 'oci',
        driver_reason: reason,
        strategy: 'fresh',
        problem: null,
      });
      expect(server.output).toContain(`oci driver (${reason})`);
      const { receipt } = await runCode(server, 'bash', 'true');
      expect(receipt.isolation.driver).toBe('oci');
      await stopClean(server, 1);
    });

    test('[CX-11, CX-15] takes docker where oci cannot serve, and says why', async () => {
      const server = await startServer({ way: withAuto(way), args: [...ONE_CELL, ...NO_OCI] });
      const reason = 'auto: the oci driver cannot serve: rootfs /no/such/folder does not exist';
      expect(await server.health()).toMatchObject({
        status: 'ok',
        driver: 'docker',
        driver_reason: reason,
        strategy: 'shared',
        problem: null,
        runtime: expect.stringMatching(way.runtime),
      });
      expect(server.output).toContain(`docker driver (${reason})`);
      const { receipt } = await runCode(server, 'bash', 'true');
      expect(receipt.isolation).toMatchObject({
        driver: 'docker',
        runtime: expect.stringMatching(way.runtime),
      });
      await expectServes(server);
      await stopClean(server, 1);
    });
  });

  describe('doctor', () => {
    test('[WB-02] tells of the engine: version, cgroups, runtimes, rootless, disk, who keeps what', async () => {
      const { status, stdout } = await hotcell(['doctor', ...way.args]);
      expect(status).toBe(0);
      expect(stdout).toMatch(/^✓ docker driver \(chosen\): works with Docker \d+\S* with runc$/m);
      expect(stdout).toMatch(/^ +engine +unix:\/\/\S+docker\.sock \(docker\.host\)$/m);
      expect(stdout).toMatch(/^ +cgroups +v[12], (cgroupfs|systemd) driver$/m);
      expect(stdout).toMatch(/^ +runtimes +.*\brunc\b/m);
      expect(stdout).toMatch(/^ +rootless +no$/m);
      expect(stdout).toMatch(/^ +disk +\/\S+ \(\w+\), \d+ of \d+ GB free$/m);
      expect(stdout).toMatch(/^ +PROMISE +OCI +DOCKER /m);
      for (const promise of PROMISES)
        expect(stdout).toMatch(new RegExp(`^ +${promise} +\\w+ +(kernel|supervisor) `, 'm'));
      expect(stdout).toMatch(/^ +✓ python$/m);
    });

    test('[WB-02] --json has the same for programs', async () => {
      const { status, stdout } = await hotcell(['doctor', '--json', ...way.args]);
      expect(status).toBe(0);
      const { drivers } = JSON.parse(stdout) as { drivers: { name: string }[] };
      expect(drivers.find(({ name }) => name === 'docker')).toMatchObject({
        chosen: true,
        probe: {
          ok: true,
          enforcement: { memoryBytes: 'kernel', network: 'kernel', syscalls: 'kernel' },
          facts: expect.arrayContaining([{ name: 'rootless', value: 'no' }]),
        },
      });
    });
  });

  test('[WB-03] run takes the driver as well, and leaves nothing in the engine', async () => {
    const program = 'import sys\nprint(sys.argv[1:])\nsys.exit(7)';
    const args = ['run', '-', '--language', 'python', ...way.args, '--', 'a b'];
    const { pid, status, stdout, stderr } = await hotcell(args, program);
    expect({ status, stdout, stderr }).toEqual({ status: 7, stdout: "['a b']\n", stderr: '' });
    const left = { stateDirectory: state, driver: 'docker', pid, instances: [], cgroups: [] } as const;
    expect(await describeFootprint(left)).toEqual([]);
  });
});

describe('no engine', () => {
  const REMEDY = /^ {2}→ Start the engine: .*apt-get install -y docker\.io$/m;

  test('[CX-11, WB-02] doctor says so, and how to get one', async () => {
    const { status, stdout } = await hotcell(['doctor', '--driver', 'docker', ...NO_ENGINE]);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^✗ docker driver \(chosen\): .*\/nowhere\/docker\.sock.*ENOENT/m);
    expect(stdout).toMatch(/^ +→ Start the engine: /m);
  });

  test.each([
    ['docker by its name', ['--driver', 'docker', ...NO_ENGINE], 2],
    ['auto with no other choice', ['--driver', 'auto', ...NO_OCI, ...NO_ENGINE], 3],
  ])('[CX-11] a start with %s ends at once with what to do', async (_what, args, lines) => {
    const failure: unknown = await TestServer.start({ args }).catch((error: unknown) => error);
    if (!(failure instanceof StartFailure)) throw new Error('it started', { cause: failure });
    const { code, output } = failure;
    expect(code).toBe(125);
    expect(output).toMatch(/^hotcell: .*the docker driver cannot serve: .*\/nowhere\/docker\.sock.*ENOENT/m);
    expect(output).toMatch(REMEDY);
    // One line says what is wrong; each of the others what to do.
    expect(output.trimEnd().split('\n')).toHaveLength(lines);
  });
});
