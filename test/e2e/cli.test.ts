import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PROMISES } from '../../src/core/enforcement.ts';
import {
  countMarked,
  describeTraces,
  instancesOf,
  makeMarker,
  waitUntilGone,
} from '../support/live-server.ts';
import { dataDirectoryOf, makeStateDirectory, removeFolders } from '../support/server.ts';
import { MAIN } from '../support/command.ts';

let folder = '';
let state = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-run-'));
  state = makeStateDirectory();
});
afterAll(() => {
  rmSync(folder, { recursive: true });
  removeFolders(state);
});

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return name;
}

const environment = (): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  HOTCELL_STATE_DIR: state,
  HOTCELL_SESSIONS_DIR: dataDirectoryOf(state),
});

function hotcell(
  args: readonly string[],
  input = '',
): { status: number | null; stdout: string; stderr: string; left: string[] } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
    cwd: folder,
    encoding: 'utf8',
    env: environment(),
    input,
  });
  return { status, stdout, stderr, left: describeTraces(state, []) };
}

describe('run', () => {
  test('[WB-03] a file by its extension, with arguments after --, both streams and its exit code', () => {
    const file = write(
      'both.py',
      "import sys\nprint(sys.argv[1:])\nprint('err', file=sys.stderr)\nsys.exit(7)",
    );
    const args = ['run', file, '--', '--json', '-x', 'two words'];
    expect(hotcell(args)).toEqual({
      status: 7,
      stdout: "['--json', '-x', 'two words']\n",
      stderr: 'err\n',
      left: [],
    });
  });

  test('[WB-03] code from stdin', () => {
    expect(hotcell(['run', '-', '--language', 'ruby'], 'puts 6 * 7')).toEqual({
      status: 0,
      stdout: '42\n',
      stderr: '',
      left: [],
    });
  });

  test('[WB-03] --stdin, --env and --file reach the program', () => {
    const file = write('inputs.sh', 'cat; echo "$REGION"; cat july.csv');
    write('notes.txt', 'notes\n');
    write('july.csv', '1,2\n');
    const named = hotcell(['run', file, '--stdin', 'notes.txt', '--env', 'REGION=a=b', '--file', 'july.csv']);
    expect(named).toMatchObject({ status: 0, stdout: 'notes\na=b\n1,2\n' });
    expect(hotcell(['run', file, '--stdin', '-', '-f', 'july.csv'], 'piped\n').stdout).toBe('piped\n\n1,2\n');
    // Without --stdin the program finds the end of its input, whatever ours holds.
    expect(hotcell(['run', file, '-f', 'july.csv'], 'not for it').stdout).toBe('\n1,2\n');
  });

  test('[WB-03, CX-05] --timeout ends with 124 and says so', () => {
    const marker = makeMarker();
    const { status, stdout, stderr, left } = hotcell([
      'run',
      write('long.sh', `echo started; setsid sleep ${marker} & wait`),
      '--timeout',
      '1s',
    ]);
    expect({ status, stdout, left }).toEqual({ status: 124, stdout: 'started\n', left: [] });
    expect(stderr).toContain('--timeout');
    expect(countMarked(marker)).toBe(0);
  });

  test('[WB-03, CX-09] --memory is a limit that is told', () => {
    const file = write('big.py', 'x = bytearray(100 << 20)\nprint(len(x))');
    const small = hotcell(['run', file, '--memory', '64m']);
    expect(small).toMatchObject({ status: 137, stdout: '' });
    expect(small.stderr).toContain('--memory');
    expect(hotcell(['run', file, '--memory', '200m'])).toMatchObject({ status: 0, stdout: '104857600\n' });
  });

  test('[WB-03, SC-04] --json prints one object and nothing else', () => {
    const { status, stdout, stderr } = hotcell([
      'run',
      write('j.js', "console.log('out'); console.error('err'); process.exit(3)"),
      '--json',
    ]);
    expect({ status, stderr }).toEqual({ status: 3, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({
      outcome: { kind: 'exited', code: 3 },
      exit_code: 3,
      stdout: { text: 'out\n', truncated: false },
      stderr: { text: 'err\n' },
      language: 'javascript',
      isolation: { driver: 'oci' },
    });
  });

  test('[WB-03] output past the cap of a reply is streamed whole', () => {
    const { status, stdout } = hotcell(['run', write('much.sh', 'yes | head -c 1000000')]);
    expect({ status, length: stdout.length }).toEqual({ status: 0, length: 1_000_000 });
  });

  test('[WB-03] signals of the program are told as 128 + n', () => {
    expect(hotcell(['run', write('kill.sh', 'kill -TERM $$')])).toMatchObject({ status: 143, left: [] });
  });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    '[WB-03, CX-18] output comes as it is made, and %s ends everything with %i',
    async (signal, exitCode) => {
      const marker = makeMarker();
      const file = write('wait.sh', `echo first; setsid sleep ${marker} & sleep ${marker}`);
      const child = spawn(process.execPath, [MAIN, 'run', file], {
        cwd: folder,
        env: environment(),
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const [first] = (await once(child.stdout, 'data')) as [Buffer];
      expect(first.toString()).toBe('first\n');
      const instances = instancesOf(state);
      const exited = once(child, 'exit');
      child.kill(signal);
      expect(await exited).toEqual([exitCode, null]);
      await waitUntilGone(marker);
      expect(describeTraces(state, instances)).toEqual([]);
    },
  );
});

describe('doctor', () => {
  test('[CX-12, WB-02] says whether fresh cells can be made inside cells that wait', () => {
    const off = hotcell(['doctor', '--json']);
    expect(JSON.parse(off.stdout)).toMatchObject({ nests: { asked: false, problem: null } });
    expect(off.left).toEqual([]);
    const on = hotcell(['doctor', '--set', 'pool.nested=true']);
    expect(on.stdout).toContain('are made inside cells that wait, and their walls stand');
  });

  test('[WB-02, SC-04] --json says who keeps which promise, and exits with 0 where the driver can serve', () => {
    const { status, stdout, left } = hotcell(['doctor', '--json']);
    expect({ status, left }).toEqual({ status: 0, left: [] });
    const report = JSON.parse(stdout) as {
      drivers: { name: string; chosen: boolean; probe: { ok: boolean; enforcement: object } }[];
    };
    const oci = report.drivers.find(({ name }) => name === 'oci');
    expect(oci).toMatchObject({
      chosen: true,
      probe: { ok: true, runtime: expect.any(String), notes: expect.any(Array) },
    });
    expect(Object.keys(oci?.probe.enforcement ?? {}).toSorted()).toEqual(PROMISES.toSorted());
    const subprocess = report.drivers.find(({ name }) => name === 'subprocess');
    expect(subprocess?.chosen).toBe(false);
    expect(JSON.stringify(subprocess)).toContain('nobody');
  });

  test('[WB-02] what cannot work is said with its remedy, and exits with 1', () => {
    const { status, stdout } = hotcell(['doctor', '--json', '--set', 'rootfs=/no/such/folder']);
    expect(status).toBe(1);
    expect(stdout).toContain('"remedy"');
    expect(stdout).toContain('/no/such/folder does not exist');
  });
});
