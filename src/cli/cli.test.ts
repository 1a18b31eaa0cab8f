import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMPILE_CACHE, MAIN } from '../../test/support/command.ts';
import { Config } from '../app/config/config.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-cli-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The real command, with nothing in its environment but what the test gives. */
function hotcell(args: readonly string[], options: { env?: Record<string, string>; input?: string } = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...COMPILE_CACHE, ...options.env },
    input: options.input ?? '',
  });
  return { status, stdout, stderr };
}

const words = (text: string): string[] => text.split(/, | or /);

describe('help', () => {
  test('[WB-03] --version prints the version of the package and nothing else', () => {
    const manifest: unknown = JSON.parse(
      readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
    );
    const { status, stdout, stderr } = hotcell(['--version']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(manifest).toMatchObject({ version: stdout.trim() });
  });

  test('[WB-03] --help names every command and gives examples', () => {
    const { status, stdout } = hotcell(['--help']);
    expect(status).toBe(0);
    const commands = [
      'run',
      'up|serve',
      'session',
      'fleet',
      'build',
      'doctor',
      'languages',
      'images',
      'config',
    ];
    for (const word of [...commands, 'Examples:', 'Exit codes:']) {
      expect(stdout).toContain(word);
    }
  });

  test.each(['run', 'up', 'serve', 'build', 'doctor', 'languages', 'images', 'config'])(
    '[WB-03] %s --help gives examples',
    (name) => {
      const { status, stdout } = hotcell([name, '--help']);
      expect(status).toBe(0);
      expect(stdout).toContain('Examples:');
      expect(stdout).toContain('--json');
      expect(stdout).not.toContain('--api-key');
    },
  );

  test.each([
    ['fleet', 'kurukshetra'],
    ['fleet', 'rush'],
    ['mahabharatha', 'run'],
    ['mahabharatha', 'kurukshetra'],
    ['mahabharatha', 'rush'],
  ])('[WB-03] %s %s is fleet run', (program, name) => {
    const body = (text: string): string => text.slice(text.indexOf('\n'));
    const { status, stdout } = hotcell([program, name, '--help']);
    expect(status).toBe(0);
    expect(body(stdout)).toContain('hotcell fleet run --workers 4');
    expect(body(stdout)).toBe(body(hotcell(['fleet', 'run', '--help']).stdout));
  });

  test('[WB-03] every command of the fleet has a plain name, and mahabharatha has the same ones', () => {
    const commandsOf = (program: string): string[] =>
      [...hotcell([program, '--help']).stdout.matchAll(/^  ([a-z|]+) (?:\[options\]|<)/gm)].map(
        ([, name = '']) => name,
      );
    expect(commandsOf('fleet')).toEqual(commandsOf('mahabharatha'));
    expect(commandsOf('fleet')).toContain('run|kurukshetra');
  });

  test('the help names exactly the values that the schema accepts', () => {
    // A description goes on in the next line, below itself.
    const stdout = hotcell(['up', '--help']).stdout.replaceAll(/\n {20,}(?=\S)/g, ' ');
    expect(words(/what makes the cells: (.*)/.exec(stdout)?.[1] ?? '')).toEqual(
      Config.shape.driver.unwrap().options,
    );
    expect(words(/OCI runtime: (.*)/.exec(stdout)?.[1] ?? '')).toEqual(Config.shape.runtime.unwrap().options);
    expect(words(/--log-level <level> +(.*)/.exec(stdout)?.[1] ?? '')).toEqual(
      Config.shape.logLevel.unwrap().options,
    );
  });
});

describe('usage', () => {
  test('[WB-03] an unknown command is answered with the nearest one and exit code 2', () => {
    expect(hotcell(['docter'])).toEqual({
      status: 2,
      stdout: '',
      stderr: "hotcell: unknown command 'docter'\n  → Did you mean doctor?\n",
    });
  });

  test('[WB-03] an unknown option is refused', () => {
    const { status, stderr } = hotcell(['config', '--jsom']);
    expect(status).toBe(2);
    expect(stderr).toBe("hotcell: unknown option '--jsom'\n  → Did you mean --json?\n");
  });

  test.each([
    [['run', 'none.py'], 'cannot read none.py'],
    [['run', '-'], 'stdin has no extension'],
    [['run', 'x.unknown'], 'no language has the extension of x.unknown'],
    [['run', '-', '--language', 'cobol'], 'there is no language cobol'],
    [['run', '-', '--language', 'python', '--stdin', '-'], 'stdin cannot be both'],
    [['run', '-', '--language', 'python', '--env', 'A'], 'name=value'],
    [['run', '-', '--language', 'python', '--env', '1A=x'], 'a variable name has letters'],
    [['run', '-', '--language', 'python', '--file', '/'], '--file /'],
    [['up', '--set', 'apiKey=12345678'], 'apiKey cannot be set on the command line'],
  ])('[WB-03] %j is refused before anything starts', (args, message) => {
    const { status, stdout, stderr } = hotcell(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).toMatch(/^hotcell: .*\n {2}→ .*\n$/);
  });

  test('[WB-03] a failure is JSON too when --json is given', () => {
    const { status, stdout } = hotcell(['run', 'none.py', '--json']);
    expect(status).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({ code: 'INVALID_REQUEST', hint: expect.any(String) });
  });
});

describe('config', () => {
  test('[WB-03] shows each value and where it came from, the API key masked', () => {
    const file = join(folder, 'good.yaml');
    writeFileSync(file, 'limits:\n  memoryBytes: 64m\nhost: 10.0.0.1\n');
    const { status, stdout, stderr } = hotcell(
      ['config', '--json', '--config', 'good.yaml', '--set', 'pool.size=7', '--driver', 'oci'],
      { env: { HOTCELL_API_KEY: 'open-sesame', HOTCELL_HOST: '10.0.0.2' } },
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).not.toContain('sesame');
    expect(JSON.parse(stdout)).toMatchObject({
      apiKey: { value: '********', origin: 'environment HOTCELL_API_KEY' },
      host: { value: '10.0.0.2', origin: 'environment HOTCELL_HOST' },
      'limits.memoryBytes': { value: 64 * 1024 ** 2, origin: `file ${file}` },
      'pool.size': { value: 7, origin: 'flag --set pool.size' },
      driver: { value: 'oci', origin: 'flag --driver' },
      port: { value: 8000, origin: 'default' },
    });
  });

  test('[WB-03] the table has no colour off a terminal', () => {
    const { stdout } = hotcell(['config']);
    expect(stdout).toMatch(/^KEY +VALUE +FROM\n/);
    expect(stdout.includes('\u001b')).toBe(false);
  });

  test('[WB-03] --keys lists every key even when the settings are wrong', () => {
    const { status, stdout } = hotcell(['config', '--keys'], { env: { HOTCELL_PORT: 'x' } });
    expect(status).toBe(0);
    expect(stdout).toMatch(/pool\.size +HOTCELL_POOL_SIZE +booted cells/);
  });

  test('[WB-03] every mistake in a file is named at once, with exit code 78 and no stack trace', () => {
    writeFileSync(join(folder, 'bad.yaml'), 'prot: 1\nlimits:\n  cpus: -1\n  memry: 5\n');
    const { status, stdout, stderr } = hotcell(['up', '--config', 'bad.yaml'], {
      env: { HOTCELL_TYPO: '1' },
    });
    const file = join(folder, 'bad.yaml');
    expect({ status, stdout }).toEqual({ status: 78, stdout: '' });
    expect(stderr.split('\n').slice(0, 5)).toEqual([
      'hotcell: 4 settings are wrong:',
      `  file ${file}: prot: unknown key; did you mean port?`,
      `  file ${file}: limits.memry: unknown key`,
      '  environment HOTCELL_TYPO: unknown variable',
      `  file ${file}: limits.cpus: expected number to be >0, not -1`,
    ]);
    expect(stderr).not.toContain('    at ');
  });

  test('[WB-03] a limit flag of run is named as it was typed', () => {
    const { status, stderr } = hotcell(['run', 'x.py', '--timeout', '5 parsecs', '--memory', '1k']);
    expect(status).toBe(78);
    expect(stderr).toContain('flag --timeout: must be a number of milliseconds');
    expect(stderr).toContain('flag --memory: expected number to be >=8388608, not 1024');
  });
});

describe('languages', () => {
  test('[CX-02] lists the table with the additions and removals of the operator', () => {
    writeFileSync(
      join(folder, 'languages.yaml'),
      'languages: { lua: { extension: lua, command: [lua, "{filepath}"] }, ruby: false }\n',
    );
    const { status, stdout, stderr } = hotcell(['languages', '--json', '--config', 'languages.yaml']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const rows: unknown = JSON.parse(stdout);
    expect(rows).toContainEqual(
      expect.objectContaining({ name: 'lua', extension: 'lua', command: ['lua', '{filepath}'], image: null }),
    );
    expect(rows).toContainEqual(expect.objectContaining({ name: 'python', available: expect.any(Boolean) }));
    expect(rows).not.toContainEqual(expect.objectContaining({ name: 'ruby' }));
  });
});
