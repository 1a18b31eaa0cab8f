import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../support/leftovers.ts';
import { describeTraces, instancesOf } from '../support/live-server.ts';
import { dataDirectoryOf, makeStateDirectory, removeFolders } from '../support/server.ts';

const LAUNCHER = fileURLToPath(new URL('../../hotcell', import.meta.url));
let folder = '';
let state = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-launcher-'));
  symlinkSync(LAUNCHER, join(folder, 'linked'));
  state = makeStateDirectory();
});
afterAll(() => {
  rmSync(folder, { recursive: true });
  removeFolders(state);
});

/** No more than a bare login has: no Node in the path, no npm. */
const environment = (): Record<string, string> => ({
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: folder,
  HOTCELL_STATE_DIR: state,
  HOTCELL_SESSIONS_DIR: dataDirectoryOf(state),
});

function launch(
  program: string,
  args: readonly string[],
  input = '',
): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd: folder,
    encoding: 'utf8',
    env: environment(),
    input,
  });
  return { status, stdout, stderr };
}

describe('the launcher, where everything is installed', () => {
  test('[WB-05] says nothing of its own', () => {
    const { version } = JSON.parse(readFileSync(join(LAUNCHER, '../package.json'), 'utf8')) as {
      version: string;
    };
    expect(launch(LAUNCHER, ['--version'])).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('[WB-05, WB-03] works from another folder and through a link', () => {
    const ran = launch('./linked', ['run', '-', '--language', 'python'], 'print(6 * 7)');
    expect(ran).toEqual({ status: 0, stdout: '42\n', stderr: '' });
  });

  test('[WB-05] up prints the address and an example that works when pasted', async () => {
    // One cell per language: all are booted when it says that it is ready.
    const child = spawn(LAUNCHER, ['up', '--port', '0', '--set', 'pool.size=1'], {
      cwd: folder,
      env: environment(),
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const exited = once(child, 'exit');
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const find = (pattern: RegExp): string => pattern.exec(output)?.[1] ?? '';
    try {
      await waitFor('it is ready', () => output.includes('Try it:\n  curl') && output.endsWith('\n'));
      const pasted = launch('bash', ['-c', find(/^ {2}(curl .*)$/m)]);
      expect(JSON.parse(pasted.stdout)).toMatchObject({ stdout: '42\n', exit_code: 0 });
      const address = find(/ready on (http:\S+)/);
      await waitFor('it is at rest', async () => {
        const metrics = await (await fetch(`${address}/metrics`)).text();
        return [...metrics.matchAll(/^hotcell_cells_ready\{.*\} (\d+)$/gm)].every(
          ([, cells]) => cells === '1',
        );
      });
    } finally {
      const instances = instancesOf(state);
      child.kill('SIGTERM');
      expect(await exited).toEqual([0, null]);
      expect(describeTraces(state, instances)).toEqual([]);
    }
  });
});

describe('mahabharatha', () => {
  const FLEET = join(LAUNCHER, '../mahabharatha');

  test('[FL-01] is hotcell fleet under its own name, from any folder and through a link', () => {
    symlinkSync(FLEET, join(folder, 'fleet'));
    const { status, stdout, stderr } = launch('./fleet', ['--help']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^Usage: mahabharatha \[options\] \[command\]\n/);
    const flow = ['init', 'plan', 'design', 'run', 'status', 'logs', 'merge'];
    const places = flow.map((word) => stdout.indexOf(`\n  hotcell fleet ${word}`));
    expect(places).toEqual(places.toSorted((left, right) => left - right));
    expect(places[0]).toBeGreaterThan(0);
    const group = launch(LAUNCHER, ['fleet', '--help']).stdout;
    expect(group).toMatch(/^Usage: hotcell fleet /);
    // The same commands.
    const commands = (text: string): string[] =>
      [...text.matchAll(/^ {2}(\S+) \[/gm)].map(([, name = '']) => name).filter((name) => name !== 'help');
    expect(commands(stdout)).toContain('plan');
    expect(commands(group)).toEqual(commands(stdout));
  });

  test('[FL-01] says its version, and mistakes under its own name', () => {
    expect(launch(FLEET, ['--version'])).toEqual(launch(LAUNCHER, ['--version']));
    expect(launch(FLEET, ['desing'])).toEqual({
      status: 2,
      stdout: '',
      stderr: "mahabharatha: unknown command 'desing'\n  → Did you mean design?\n",
    });
    expect(launch(FLEET, ['design', '--help']).stdout).toMatch(/^Usage: mahabharatha design /);
    expect(launch(FLEET, ['init'])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^mahabharatha: .* is in no git repository\n {2}→ /),
    });
  });

  test('[FL-01] comes with the package', () => {
    const { bin } = JSON.parse(readFileSync(join(LAUNCHER, '../package.json'), 'utf8')) as {
      bin: Record<string, string>;
    };
    expect(bin['mahabharatha']).toBe('./mahabharatha');
  });
});

describe('the launcher, before it installs what cells need', () => {
  const ROOT = join(LAUNCHER, '..');
  /** A machine without Ruby, on which nothing is installed. */
  const ASK = `
    source "$0/scripts/setup.sh" && find_node "$0"
    find_missing_for_cells() { MISSING=(ruby); }
    install_debian_packages() { shift; printf '%s' "$*"; }
    ensure_cell_packages "$0" always "$@"`;
  const installedFor = (words: readonly string[]): unknown =>
    launch('bash', ['--norc', '-euo', 'pipefail', '-c', ASK, ROOT, ...words]);

  test.runIf(process.platform === 'linux').each<[string[], string]>([
    [['up'], 'ruby'],
    [['up', '--port', '9000', '--driver', 'oci'], 'ruby'],
    [['up', '--port', '9000', '--driver', 'docker'], ''],
    [['run', 'x.py', '--driver=docker'], ''],
    [['run', 'x.py', '--set', 'driver=docker'], ''],
    [['up', '--set', 'docker.host=docker'], 'ruby'],
    [['run', 'x.py', '--', '--driver', 'docker'], 'ruby'],
    // Whatever is wrong the command itself tells.
    [['up', '--driver', 'magic'], ''],
    [['up', '--set', 'nonsense'], ''],
    [['up', '--help'], ''],
  ])('[WB-05] %j wants "%s" of this machine', (words, installed) => {
    expect(installedFor(words)).toEqual({ status: 0, stdout: installed, stderr: '' });
  });

  test.runIf(process.platform === 'linux')('[WB-05] a settings file says it as well as a flag', () => {
    const file = join(folder, 'docker.yaml');
    writeFileSync(file, 'driver: docker\n');
    expect(installedFor(['up', '--config', file])).toMatchObject({ status: 0, stdout: '' });
    expect(installedFor(['up', '--config', file, '--driver', 'oci'])).toMatchObject({ stdout: 'ruby' });
  });
});
